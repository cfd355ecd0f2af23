"""hub/Dockerfile and hub/values.yaml: what they name exists, both agree, and students get no hidden check."""

import fnmatch
import importlib.util
import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from course_lib import cli
from course_lib.commands import unpack

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VALUES = yaml.safe_load((ROOT / "hub" / "values.yaml").read_text(encoding="utf-8"))
FILES = [line for line in (ROOT / "hub" / "Dockerfile.dockerignore").read_text().splitlines() if line[0] != "#"]
PROGRAMS = "apt-get echo grep mkdir python rm useradd /opt/course/venv/bin/pip".split()  # of the base image, and made
# Keys of the chart that we set, as its configuration reference documents them; what is below hub.config, and an
# exec command, are JupyterHub's and Kubernetes' own.
DOCUMENTED = """
hub.config hub.concurrentSpawnLimit
proxy.https.enabled proxy.https.type proxy.https.hosts proxy.https.letsencrypt.contactEmail
singleuser.image.name singleuser.image.tag singleuser.cmd singleuser.defaultUrl singleuser.uid singleuser.fsGid
singleuser.startTimeout singleuser.memory.guarantee singleuser.memory.limit singleuser.cpu.guarantee
singleuser.cpu.limit singleuser.extraEnv singleuser.storage.type singleuser.storage.capacity
singleuser.storage.homeMountPath singleuser.lifecycleHooks singleuser.networkPolicy.enabled
cull.enabled cull.timeout cull.every cull.maxAge prePuller.hook.enabled prePuller.continuous.enabled
scheduling.userScheduler.enabled scheduling.podPriority.enabled scheduling.userPlaceholder.enabled
scheduling.userPlaceholder.replicas
""".split()


def instructions(text):
    """Name and words of each instruction of a Dockerfile."""
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    return [tuple(line.split(" ", 1)) for line in joined.splitlines() if line.strip()]


DOCKERFILE = instructions((ROOT / "hub" / "Dockerfile").read_text(encoding="utf-8"))


def words_of(name):
    return [words for kind, words in DOCKERFILE if kind == name]


def commands():
    """The commands of all RUN lines, as lists of words."""
    return [shlex.split(part) for words in words_of("RUN") for part in words.split(" && ")]


def test_each_command_of_a_layer_is_one_that_the_image_has():
    assert len(commands()) > 7 and {command[0] for command in commands()} <= set(PROGRAMS)


def test_only_files_of_a_release_are_copied_and_only_they_travel_to_the_builder():
    copied = [words.split()[0] for words in words_of("COPY")]
    assert copied == ["constraints.txt", "dist/course_lib-*.whl", "dist/course-files-*.zip"]
    assert FILES == ["*", *(f"!{name}" for name in copied)]
    assert (ROOT / "constraints.txt").is_file() and fnmatch.fnmatch(f"dist/{unpack.archive_name()}", copied[2])


def test_what_a_layer_uses_was_copied_or_made_by_one_before_it():
    there = {"/opt/course"}
    for kind, words in DOCKERFILE:
        if kind == "COPY":
            source, target = words.split()
            there.add(target + Path(source).name if target.endswith("/") else target)
        elif kind == "RUN":
            used = re.findall(r"/opt/course/[\w./*-]+", words)
            made = {path for path in used if re.search(rf"(>|-m venv|--parents) {re.escape(path)}", words)}
            there |= made
            assert [path for path in used if not any(f"{path}/".startswith(f"{place}/") for place in there)] == []


def test_the_python_of_the_image_is_one_of_the_course_and_that_of_its_paths():
    (base,) = words_of("FROM")
    version = re.fullmatch(r"python:(3\.\d+)-slim-bookworm", base)[1]
    assert SpecifierSet(PROJECT["requires-python"]).contains(version)
    paths = re.findall(r"lib/python(3\.\d+)/site-packages/(\S+)", " ".join(words_of("ENV")))
    assert paths and all(found == version and (ROOT / path).is_dir() for found, path in paths)


def test_the_image_has_a_jupyterhub_that_the_course_takes():
    (asked,) = [Requirement(json.loads(words.partition("=")[2])) for words in words_of("ARG") if "JUPYTERHUB" in words]
    (ours,) = map(Requirement, PROJECT["optional-dependencies"]["host"])
    assert asked.name == ours.name == "jupyterhub" and all(ours.specifier.contains(v) for v in ("5.3.0", "5.4.5"))
    assert asked.specifier.contains("5.4.5") and not asked.specifier.contains("6.0.0")  # chart 4 has JupyterHub 5


def test_the_container_starts_the_course_as_somebody_without_powers():
    assert words_of("USER") == ["learner"] and words_of("WORKDIR") == ["/home/learner"]
    program, *words = json.loads(words_of("CMD")[0])
    command = typer.main.get_command(cli.app).commands[words.pop(0)]
    assert program == "course" and command.make_context("lab", list(words)).params["browser"] is False
    assert words_of("EXPOSE") == [words[-1]]
    environment = " ".join(words_of("ENV"))
    assert f"{unpack.VARIABLE}=/opt/course/course-files.zip" in environment


def set_keys(values, prefix=""):
    """The documented key of each value that is set, else its full one."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and name not in DOCUMENTED:
            yield from set_keys(value, f"{name}.")
        else:
            yield name


def test_each_setting_is_one_that_the_chart_documents():
    assert sorted(set_keys(VALUES)) == sorted(DOCUMENTED)
    assert list(set_keys({"singleuser": {"memry": {"limit": 1}}})) == ["singleuser.memry.limit"]


def test_the_settings_are_those_of_the_image():
    user = VALUES["singleuser"]
    assert user["image"]["tag"] == PROJECT["version"] and user["storage"]["homeMountPath"] == words_of("WORKDIR")[0]
    (made,) = [command for command in commands() if command[0] == "useradd"]
    assert made[made.index("--uid") + 1] == str(user["uid"]) == str(user["fsGid"])
    assert float(user["extraEnv"]["OMP_NUM_THREADS"]) <= user["cpu"]["limit"]


def test_the_hook_unpacks_what_the_first_page_shows():
    *_, line = VALUES["singleuser"]["lifecycleHooks"]["postStart"]["exec"]["command"]
    folder, module = re.fullmatch(r"cd (\S+) && python -m (\S+)", line).groups()
    assert folder == VALUES["singleuser"]["storage"]["homeMountPath"] and importlib.util.find_spec(module)
    page = VALUES["singleuser"]["defaultUrl"].removeprefix(f"/lab/tree/{unpack.UNPACKED}/")
    assert (ROOT / page).is_file()


@pytest.mark.parametrize("key", ["authorize_url", "token_url", "userdata_url", "oauth_callback_url"])
def test_addresses_are_placeholders_and_no_secret_is_in_the_file(key):
    oauth = VALUES["hub"]["config"]["GenericOAuthenticator"]
    assert re.match(r"https://[\w-]+\.example\.org/", oauth[key]) and "client_secret" not in oauth
