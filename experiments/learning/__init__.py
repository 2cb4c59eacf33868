"""How a run learned: the path of its models, the loss surface around it, and the regions that models assign to each
class.

trajectory.py   a task that also records the models that pass through it, and the models recorded in a run
plane.py        the plane of the path's two main directions, and the loss on it
recording.py    the recording of a run while it trains, if that costs little
boundary.py     the classes that the reported models assign to a grid of points
replay.py       all of it for a stored run, as a job of the pool

A run whose gradients take far longer than copying its model is recorded while it trains. Others are replayed, short
ones at once by the process that made them. If the replay does not end with the run's digest, nothing is shown.
"""
