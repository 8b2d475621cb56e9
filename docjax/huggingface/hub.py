"""Writes model folders to the Hugging Face Hub; `files.py` reads them from there."""

from pathlib import Path
from typing import Any

from docjax.errors import UserError

MESSAGE = "Add a model of docjax"


def check_name(repo_id: Any) -> None:
    """Raises UserError for the name of no repository."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    if not isinstance(repo_id, str):
        raise UserError(f"repo_id is a {type(repo_id).__name__}: give USER/NAME")
    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError(
            f"repo_id {str(repo_id)[:80]!r} ({reason}): give USER/NAME"
        ) from None


def push(
    folder: Path,
    repo_id: str,
    *,
    token: str | None,
    private: bool | None,
    message: str | None,
    exist_ok: bool,
    **where: Any,
) -> str:
    """Uploads a folder into a repository, made if it is not there; returns the address
    of the commit.

    Args:
      token: None: that of `hf auth login`, or of the variable HF_TOKEN.
      exist_ok: whether the repository may be there already.
      where: `revision`, a branch that is made if needed, and `create_pr`.

    Raises:
      UserError: for what the hub refuses, and if it is not reached.
    """
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError

    api = huggingface_hub.HfApi(token=token, library_name="docjax")
    no_answer = HfHubHTTPError.__bases__[0]  # of httpx, or of httpx2
    try:
        made = api.create_repo(repo_id, private=private, exist_ok=exist_ok)
        if where["revision"] is not None:
            api.create_branch(made.repo_id, branch=where["revision"], exist_ok=True)
        commit = api.upload_folder(
            repo_id=made.repo_id,
            folder_path=folder,
            commit_message=message or MESSAGE,
            **where,
        )
    except (no_answer, OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise UserError(
            f"{repo_id}: the hub at {api.endpoint} refuses it or gives no answer "
            f"({reason}); {_mend(error)}"
        ) from None
    return commit.pr_url or commit.commit_url


def _mend(error: Exception) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403):
        return "give token=, or run hf auth login, with the right to write there"
    if status == 409:
        return "give exist_ok=True to write into a repository that is there"
    return "check the name and the network, and push again"
