"""Released weights by their names, through the package huggingface_hub: fetched once, pinned, safetensors only."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import ModuleType

CONFIG, WEIGHTS = "config.json", "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
SECONDS_TO_ANSWER = 10.0

RELEASED: dict[str, str | None] = {  # repository -> the commit that we open; None: we have not verified one
    "openai-community/gpt2": "607a30d783dfa663caf39e06633721c8d4cfcd7e",
    "openai-community/gpt2-medium": None,
    "google-bert/bert-base-uncased": "86b5e0934494bd15c9632b12f734a8a67f723594",
    "google-t5/t5-small": "df1b051c49625cf57a3d0d8d3863ed4d13564fe4",
    "Helsinki-NLP/opus-mt-en-fr": None,
    "microsoft/resnet-50": "34c2154c194f829b11125337b98c8f5f9965ff19",
    "google/vit-base-patch16-224": "3f49326eb077187dfe1c2a2bb15fbd74e6ab91e3",
    "microsoft/swin-tiny-patch4-window7-224": None,
    "facebook/vit-mae-base": None,
}
SHORT = {repository.partition("/")[2]: repository for repository in RELEASED}


def is_name(text: str) -> bool:
    """Whether a text is a released name or could be one: a known one, or OWNER/NAME."""
    owner, _, name = text.partition("/")
    return text in SHORT or (bool(name) and "/" not in name and owner not in ("", ".", "..", "~"))


def fetch_released(
    name: str,
    *,
    shards: Callable[[Path], Iterable[str]],
    beside: Callable[[Path], Iterable[str]] = lambda config: (),
    revision: str | None = None,
) -> Path:
    """The folder with config.json and the weights of a released model, fetched if it is not in the hub's cache.

    `name` is a repository, or the second half of one in `RELEASED`. Without a `revision` it is the pinned commit, or
    the newest where none is pinned. Large models come in several files: `shards` reads their names in the index.
    `beside` says by config.json which more files are taken along, if there are any. A download that breaks off is taken
    up again a few times; if it stays broken, nothing of that file is kept.
    Raises ValueError for a name or a revision that does not exist, and FileNotFoundError, saying what to do, without
    huggingface_hub, without a network, and for a repository without safetensors.
    """
    repository = SHORT.get(name, name)
    revision = revision or RELEASED.get(repository)
    hub = hub_package(repository)
    errors = hub.errors
    try:
        check_reachable(hub, repository, revision)
        config = get(hub, repository, CONFIG, revision)
        try:
            get(hub, repository, WEIGHTS, revision)
        except errors.RemoteEntryNotFoundError:
            for shard in sorted(set(shards(Path(get(hub, repository, INDEX, revision))))):
                get(hub, repository, shard, revision)
        for file in beside(Path(config)):
            with suppress(errors.EntryNotFoundError):  # there is none, or no network
                get(hub, repository, file, revision)
    except errors.RepositoryNotFoundError as problem:
        raise ValueError(
            f"There is no folder {name} here, and the hub has no model {repository!r} for everybody. Known names: "
            f"{', '.join(SHORT)}."
        ) from problem
    except errors.RevisionNotFoundError as problem:
        raise ValueError(f"{repository} has no revision {revision!r}.") from problem
    except errors.RemoteEntryNotFoundError as problem:
        raise FileNotFoundError(
            f"{repository} has no {CONFIG} with {WEIGHTS} at {revision or 'its newest revision'}. Pickled weights can "
            "run code, and are not opened: convert them where you trust them, by transformers' save_pretrained(folder)."
        ) from problem
    except errors.HFValidationError as problem:
        raise ValueError(f"{name!r} is no name of a model: {problem}") from problem
    except errors.LocalEntryNotFoundError as problem:
        raise FileNotFoundError(
            f"There is no folder {name} here, {repository} is not in this machine's cache, and the hub cannot be "
            "reached. Connect to the network and call again, or pass a folder that holds the model."
        ) from problem
    except (OSError, errors.HTTPError) as problem:
        raise FileNotFoundError(
            f"The download of {repository} broke off ({type(problem).__name__}). Call again: what came whole stays."
        ) from problem
    return Path(config).parent


def check_reachable(hub: ModuleType, repository: str, revision: str | None) -> None:
    """Raises LocalEntryNotFoundError if a model is not in the cache and nobody answers: else the hub is asked for long.

    One question without a further attempt, where the package itself makes five, and says so each time.
    """
    errors = hub.errors
    if isinstance(hub.try_to_load_from_cache(repository, CONFIG, revision=revision), str):
        return
    try:
        hub.get_hf_file_metadata(hub.hf_hub_url(repository, CONFIG, revision=revision), timeout=SECONDS_TO_ANSWER)
    except errors.HfHubHTTPError:
        return  # an answer, of which the download will tell what it means
    except (OSError, errors.HTTPError) as problem:
        raise errors.LocalEntryNotFoundError(f"nobody answers: {problem}") from problem


def get(hub: ModuleType, repository: str, file: str, revision: str | None) -> str:
    """The path of one file in the cache."""
    return hub.hf_hub_download(repository, file, revision=revision)


def hub_package(repository: str) -> ModuleType:
    """The package huggingface_hub. Raises FileNotFoundError, with the ways to get the model, without it."""
    try:
        import huggingface_hub
        import huggingface_hub.errors
    except ImportError:
        short = repository.rpartition("/")[2]
        raise FileNotFoundError(
            f"There is no folder {repository}, and released models are fetched by the package huggingface_hub: python "
            f"-m pip install 'huggingface_hub>=1,<3'. Or get the model elsewhere, by `hf download {repository} "
            f"--local-dir {short}`, and pass that folder."
        ) from None
    return huggingface_hub
