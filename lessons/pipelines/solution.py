"""A perfect solution to the exercise on pipelines: ZB-H1."""


def schedule(stage, stages, chunks):
    ahead = min(stages - 1 - stage, chunks)
    ops = [f"F{chunk}" for chunk in range(ahead)]
    for chunk in range(chunks):
        if chunk + ahead < chunks:
            ops.append(f"F{chunk + ahead}")
        ops.append(f"I{chunk}")
        if chunk >= stage:  # as far behind as the earlier stages are ahead
            ops.append(f"W{chunk - stage}")
    return ops + [f"W{chunk}" for chunk in range(max(0, chunks - stage), chunks)]
