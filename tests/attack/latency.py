"""Attacks after which others may wait no longer than a fixed time, so nothing else may use this machine meanwhile."""
from scheduler import large_cheap_requests, without_a_cluster

ATTACKS = (without_a_cluster(large_cheap_requests),)
