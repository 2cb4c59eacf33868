"""Patches (im2col): a convolution as a matrix product.

`unfold` writes the k x k neighbourhood of every pixel as a column, so that filters (o, c k k) times patches
(c k k, h w) is the convolution. A row of patches is then one channel of the image, shifted. `fold` is the transpose:
it shifts every row back and adds it up. Outside the image everything is 0, and k is odd, so outputs are as large as
inputs.
Source: Chellapilla, Puri & Simard, High Performance Convolutional Neural Networks for Document Processing, 2006.
"""

from kernels.compiled import exact


@exact
def overlap(shifted, image, down, right):
    """Return views, of one shape, of both arrays where shifted[i, j] and image[i + down, j + right] exist."""
    height, width = image.shape
    top, left = max(0, -down), max(0, -right)
    bottom, end = max(top, height - max(0, down)), max(left, width - max(0, right))
    return shifted[top:bottom, left:end], image[top + down : bottom + down, left + right : end + right]


@exact
def unfold(patches, image, k):
    """Write the k x k neighbourhood of every pixel of image (c, h, w) to a column of patches (c k k, h w)."""
    channels, height, width = image.shape
    patches[:] = 0
    for c in range(channels):
        for u in range(k):
            for v in range(k):
                row = patches[(c * k + u) * k + v].reshape(height, width)
                there, here = overlap(row, image[c], u - k // 2, v - k // 2)
                for i in range(there.shape[0]):
                    for j in range(there.shape[1]):
                        there[i, j] = here[i, j]


@exact
def fold(image, patches, k):
    """Write to each pixel of image (c, h, w) the sum of its entries in all columns of patches (c k k, h w)."""
    channels, height, width = image.shape
    image[:] = 0
    for c in range(channels):
        for u in range(k):
            for v in range(k):
                row = patches[(c * k + u) * k + v].reshape(height, width)
                there, here = overlap(row, image[c], u - k // 2, v - k // 2)
                for i in range(there.shape[0]):
                    for j in range(there.shape[1]):
                        here[i, j] += there[i, j]
