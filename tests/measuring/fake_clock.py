"""A time that only the measured callables advance."""


class FakeClock:
    """A clock whose hand is moved by the tasks it hands out."""

    def __init__(self):
        self.now = 0.0
        self.log = []

    def __call__(self):
        return self.now

    def task(self, name, seconds):
        """What takes these seconds, or what they return, whenever it is called."""

        def run():
            self.log.append(name)
            self.now += seconds() if callable(seconds) else seconds

        return run

    def sampler(self, name, seconds):
        """The same as a sampler: it says how long it took."""
        run = self.task(name, seconds)

        def sample():
            start = self.now
            run()
            return self.now - start

        return sample
