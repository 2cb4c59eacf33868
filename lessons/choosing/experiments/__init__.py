"""The figures on choosing a strategy: the cost of a step, the memory of the model, and the number of steps of training.

Each file of this folder holds the figures of one group of questions; what they share is here.
"""

from lessons.choosing.case import Case

MS = 1e3
CASES = {
    case.name: case
    for case in (
        Case("ResNet-50", "V100", "10GbE", batch=32),
        Case("VGG-16", "V100", "10GbE", batch=32),
        Case("VGG-16", "V100", "EDR", batch=32),
        Case("GPT-2", "V100", "25GbE", batch=4),
        Case("GPT-2 XL", "H100", "NVLink", batch=2),
        Case("GPT-2 XL", "V100", "EDR", batch=1),
    )
}
LARGE = "GPT-2 XL, V100, EDR"
PLANNED = ("VGG-16", "ResNet-50")
PRECISIONS = {"float32": "single precision", "mixed": "mixed precision"}
