"""Tells asv what else its results depend on: `python -m benchmarks.machine`.

The entries are added to those of `asv machine`, and from then on kept with every result.
"""

from strategies.measuring.machine import describe


def main() -> None:
    """Adds the description of this machine to asv's entry of it, as text."""
    from asv.machine import Machine, MachineCollection

    known = describe()
    described = {
        key: str(getattr(known, key)) for key in ("cpu", "gpu", "threads", "torch", "blas")
    }
    name = Machine.get_unique_machine_name()
    entry = {**Machine.get_defaults(), **described, "machine": name}
    MachineCollection.save(name, entry)
    print(f"{name}: " + ", ".join(f"{key} {value or 'none'}" for key, value in entry.items()))


if __name__ == "__main__":
    main()
