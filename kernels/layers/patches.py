"""Patches: how a convolution becomes a matrix product.

`unfold` writes the k x k neighbourhood of every pixel as a column, so that filters (o, c k k) times patches
(c k k, h w) is the convolution. `fold` is its transpose: it adds every column back to where it came from. Outside
the image everything is 0, and k is odd, so outputs are as large as inputs.
Source: Chellapilla, Puri & Simard, High Performance Convolutional Neural Networks for Document Processing, 2006.
"""

from kernels.compiled import exact


@exact
def unfold(patches, image, k):
    """patches (c k k, h w) <- image (c, h, w)."""
    channels, height, width = image.shape
    for c in range(channels):
        for u in range(k):
            for v in range(k):
                patch = patches[(c * k + u) * k + v].reshape(height, width)
                for i in range(height):
                    for j in range(width):
                        row, column = i + u - k // 2, j + v - k // 2
                        inside = 0 <= row < height and 0 <= column < width
                        patch[i, j] = image[c, row, column] if inside else 0.0


@exact
def fold(image, patches, k):
    """image (c, h, w) <- the sum of what patches (c k k, h w) say about each pixel."""
    channels, height, width = image.shape
    image[:] = 0
    for c in range(channels):
        for u in range(k):
            for v in range(k):
                patch = patches[(c * k + u) * k + v].reshape(height, width)
                for i in range(height):
                    for j in range(width):
                        row, column = i + u - k // 2, j + v - k // 2
                        if 0 <= row < height and 0 <= column < width:
                            image[c, row, column] += patch[i, j]
