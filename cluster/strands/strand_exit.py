"""StrandExit, which plays the part of GreenletExit for strands that are not greenlets."""


class StrandExit(BaseException):
    """Raised inside a strand to end it. Not an Exception, so that no program catches it."""
