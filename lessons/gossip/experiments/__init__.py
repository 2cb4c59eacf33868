"""Figures on gossip: workers that communicate with neighbours only, how soon they agree, and what happens without
averaging.

Each file of this folder holds the figures of one group of questions. The settings that they share are here.
"""

BOWL = {"workload": "quadratic", "condition": 1, "noise": 1, "start": 0, "batch": 1, "network": "ideal"}

PEERS = {
    "synchronous": {"algorithm": "sync_sgd", "collective": "ring"},
    "D-PSGD": {"algorithm": "dpsgd"},
    "GossipGraD": {"algorithm": "gossipgrad"},
    "push-sum": {"algorithm": "push_sum"},
    "AD-PSGD": {"algorithm": "adpsgd", "topology": "ring"},
}
