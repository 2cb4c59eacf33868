"""Update rules: from a gradient to a step."""
