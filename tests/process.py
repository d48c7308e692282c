"""Programs in processes of their own."""

import os
import subprocess
import sys


def run_python(code, *arguments, timeout=240, cwd=None, **environment):
    """What has become of a program that ends well; `environment` is added to that of the tests."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done
