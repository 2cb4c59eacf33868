"""Parts shared by the pipelined algorithms.

ops, one_f_one_b              a schedule as data; the order that most pipelines share
building_block                V-shaped schedules from the passes of one micro-batch
executor, stream_executor     execute a schedule, with and without a flush, and declare its algorithm
plan                          a schedule on all ranks: which rank does what, and sends where
stage_state                   weights and their versions, micro-batches in flight
norm_clipping                 an executor that clips by the norm of all stages
settings                      knobs that pipelines share
"""
