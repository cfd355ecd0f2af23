"""JupyterHub for a class of this course on one Linux machine; docs/hosting.md says how to set it up.

Everybody has an account of the machine, and with it what the machine gives accounts: a home that nobody else reads.
"""

import os
import resource
from pathlib import Path

from jupyterhub.spawner import LocalProcessSpawner

COURSE = Path(__file__).resolve().parents[1]
PROGRAMS = COURSE / ".venv" / "bin"
GIB = 1 << 30
LIMITS = {  # of each process, but processes, which are counted for the whole account; threads count
    resource.RLIMIT_AS: 8 * GIB,  # bytes of address space, of which Python and torch map more than they fill
    resource.RLIMIT_NPROC: 512,
    resource.RLIMIT_FSIZE: 2 * GIB,  # bytes of one file
    resource.RLIMIT_CORE: 0,
}


class ClassSpawner(LocalProcessSpawner):
    """Starts a student's server as the student, within LIMITS, with files that nobody else reads."""

    def make_preexec_fn(self, name):
        become_student = super().make_preexec_fn(name)

        def prepare():
            for kind, most in LIMITS.items():
                resource.setrlimit(kind, (most, most))
            become_student()
            os.umask(0o077)

        return prepare


c = get_config()  # noqa: F821
c.JupyterHub.bind_url = "http://127.0.0.1:8000"  # in front of it stands a web server that speaks HTTPS
c.JupyterHub.authenticator_class = "pam"  # the machine's accounts and passwords
c.PAMAuthenticator.allowed_groups = {"course"}
c.PAMAuthenticator.admin_groups = {"course-staff"}

c.JupyterHub.spawner_class = ClassSpawner
c.Spawner.cmd = [str(PROGRAMS / "jupyterhub-singleuser")]
c.Spawner.default_url = "/lab"
c.Spawner.notebook_dir = "~"
c.Spawner.start_timeout = c.Spawner.http_timeout = 120  # seconds: the first ones of a lecture come all at once
c.Spawner.args = [
    "--MappingKernelManager.cull_idle_timeout=3600",  # seconds
    "--ServerApp.shutdown_no_activity_timeout=7200",
    "--ServerApp.terminado_settings={'shell_command': ['/bin/bash']}",  # no login shell, which would forget our PATH
]
c.Spawner.environment = {
    "PATH": os.pathsep.join([str(PROGRAMS), "/usr/local/bin", "/usr/bin", "/bin"]),
    "COURSE_EXCHANGE": "/srv/exchange",
    "OMP_NUM_THREADS": "2",  # or each training takes all cores
}
