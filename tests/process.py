"""Programs in processes of their own."""

import os
import subprocess
import sys


def run(*command, timeout=240, cwd=None, stdin=None, **environment):
    """What has become of a command, and what it has said; `environment` is added to that of the tests."""
    return subprocess.run(
        [*map(str, command)],
        env={**os.environ, **environment},
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def run_python(code, *arguments, **options):
    """What has become of a program that ends well."""
    done = run(sys.executable, "-c", code, *arguments, **options)
    assert done.returncode == 0, done.stderr
    return done
