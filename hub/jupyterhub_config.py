"""JupyterHub for a class of this course on one Linux machine; docs/hosting.md says how to set it up.

Everybody has an account of the machine, and with it what the machine gives accounts: a home that nobody else reads.
"""

import os
import pwd
import resource
from pathlib import Path

from jupyterhub.spawner import LocalProcessSpawner

COURSE = Path(__file__).resolve().parents[1]
PROGRAMS = COURSE / ".venv" / "bin"
MEMORY = 4 << 30  # bytes: of all that a student runs where there is systemd, twice as much address space a process else
TASKS = 512  # processes and threads of a student
CORES = 2  # processors' time of a student where there is systemd, threads of a training everywhere
IDLE = 7200  # seconds without a computation, after which a kernel ends, and then a server without kernels

c = get_config()  # noqa: F821
c.JupyterHub.bind_url = "http://127.0.0.1:8000"  # in front of it stands a web server that speaks HTTPS
c.JupyterHub.authenticator_class = "pam"  # the machine's accounts and passwords
c.PAMAuthenticator.allowed_groups = {"course"}
c.PAMAuthenticator.admin_groups = {"course-staff"}

c.Spawner.cmd = [str(PROGRAMS / "jupyterhub-singleuser")]
c.Spawner.default_url = "/lab"
c.Spawner.notebook_dir = "~"
c.Spawner.start_timeout = c.Spawner.http_timeout = 120  # seconds: the first ones of a lecture come all at once
c.Spawner.args = [
    f"--MappingKernelManager.cull_idle_timeout={IDLE}",
    f"--TerminalManager.cull_inactive_timeout={IDLE}",
    f"--ServerApp.shutdown_no_activity_timeout={IDLE}",
    "--ServerApp.terminado_settings={'shell_command': ['/bin/bash']}",  # no login shell, which would forget our PATH
]
c.Spawner.environment = {
    "PATH": os.pathsep.join([str(PROGRAMS), "/usr/local/bin", "/usr/bin", "/bin"]),
    "COURSE_EXCHANGE": "/srv/exchange",
    "JUPYTER_CONFIG_PATH": str(COURSE / "course_lib" / "commands" / "jupyter"),  # as `course lab` has it
    "OMP_NUM_THREADS": str(CORES),
}


def close_home(spawner):
    """Nobody else looks into a student's home, however the account was made."""
    os.chmod(pwd.getpwnam(spawner.user.name).pw_dir, 0o700)


class LimitedSpawner(LocalProcessSpawner):
    """Limits where there is no systemd: memory of each process, processes of each account."""

    def make_preexec_fn(self, name):
        become_student = super().make_preexec_fn(name)

        def prepare():
            resource.setrlimit(resource.RLIMIT_AS, (2 * MEMORY, 2 * MEMORY))
            resource.setrlimit(resource.RLIMIT_NPROC, (TASKS, TASKS))
            become_student()
            os.umask(0o077)

        return prepare


c.Spawner.pre_spawn_hook = close_home
if Path("/run/systemd/system").is_dir():  # a control group for each student's server, with all that it starts
    c.JupyterHub.spawner_class = "systemd"
    c.SystemdSpawner.mem_limit, c.SystemdSpawner.cpu_limit = MEMORY, CORES
    c.SystemdSpawner.isolate_tmp = True
    c.SystemdSpawner.unit_extra_properties = {"TasksMax": str(TASKS), "MemorySwapMax": "0", "UMask": "0077"}
    c.Spawner.args = [word.replace("{", "{{").replace("}", "}}") for word in c.Spawner.args]  # it formats them
else:
    c.JupyterHub.spawner_class = LimitedSpawner
