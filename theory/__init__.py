"""Theory: what a method should cost, from closed forms and from simulators that need no cluster and no training.

schedules                      pipeline schedules by name; schedule_naive and schedule_systolic belong to no algorithm
op_graph, schedule_timing      what an op waits for; when each op of a schedule starts and ends
bubbles, staleness             why a rank idles; which versions of the weights a schedule reads
delay                          the largest stable learning rate for late gradients
pipeline_memory                the memory of each rank of a schedule, and the traffic over each link
profile, balance               costs of a model's layers; chains of layers cut into parts of equal cost
published_models               ResNet-50, VGG-16 and GPT-2 as chains of layers, computed from their shapes
partition, partition_pipedream, partition_dapple       stages and replicas for a pipeline, by dynamic programming
partition_cost                 a single layer on several machines (DistBelief)
collective_costs, nccl         seconds of an all-reduce; NCCL's own model of its latency
order_statistics               waiting for the k fastest of n (stragglers)
overlap, traffic               communication hidden behind computation; FLOPs per byte, data versus model parallelism
zero_memory                    model states by the stage of ZeRO
"""
