"""Write a thread that shares a vector with others, without a lock.

`thread(comm, task, s)` runs on every core of a simulated computer, `comm.size` of them. All share one vector w of d
weights, which starts at zero.

- `shared = comm.shared(task.start())` returns it. Every thread calls this once.
- `shared.read()` returns a copy of all of w, and `shared.read(v)` a copy of the coordinates v, an array of integers.
- `shared.write(values, v)` overwrites these coordinates, and `shared.write(values)` all of them. Reading and writing
  take time, more for more coordinates, and the other threads continue meanwhile. There is no atomic addition, only a
  read and a write. There is no other way to see w.
- `for step in task.steps()` counts the samples of this thread. In each step, `_, g = task.gradient(w)` takes the next
  sample and returns the gradient of its loss at w, (d,), most of which is zero. This takes time, too.
- `s.learning_rate` is the step size of every sample.
- `comm.send(None, rank)`, `comm.recv(rank)` and `comm.barrier()` are there if you want threads to wait for each other;
  messages carry nothing. Nothing has to be returned or reported: the model is what is in the memory when all threads
  are done.

The thread below is correct if it runs alone. With several threads its result is badly wrong. Yours is graded on

- whether each gradient is added to w: for each thread, the sum of its additions (what it writes minus what it last read
  there) should be minus the learning rate times the sum of all its gradients;
- the additions that are lost: an addition to a coordinate is lost whenever a write covers what another thread has
  written there since the writer read it;
- the coordinates that are written, compared with writing those of every sample once;
- the objective, compared with that of the thread below, alone on the same data; if it is far off, nothing else counts;
- the time, compared with that of the thread below, alone, which reads and writes all of w for each sample: four threads
  can be more than four times as fast. Waiting is allowed if it costs no time.

NumPy and the standard library may be imported. Every thread is its own process.
"""

TARGETS = {
    "lost": 12,  # per cent of the coordinates written
    "written": 0.5,  # times the coordinates of all samples
    "objective": 0.02,  # above that of one thread
    "time": 0.2,  # times that of one thread
}


def thread(comm, task, s):
    """Train on this thread's samples."""
    shared = comm.shared(task.start())
    for _ in task.steps():
        w = shared.read()
        _, g = task.gradient(w)
        shared.write(w - s.learning_rate * g)
