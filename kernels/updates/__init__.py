"""Update rules: how a gradient becomes a step."""
