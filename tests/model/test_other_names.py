"""The names of sentence-transformers on a model, and pushing to a hub."""

import base64
import copy
import http.server
import inspect
import json
import pickle
import threading

import huggingface_hub
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

import docjax
from docjax.errors import UserError
from docjax.huggingface import hub
from docjax.model import face, other_names

TEXTS = ["a river", "the sea", "the doctor"]
# Names that a user of sentence-transformers types.
USED = """encode encode_query encode_document similarity similarity_pairwise save
save_pretrained push_to_hub get_sentence_embedding_dimension get_embedding_dimension
max_seq_length get_max_seq_length tokenize device start_multi_process_pool
stop_multi_process_pool encode_multi_process eval half bfloat16 float to cuda cpu
tokenizer prompts default_prompt_name similarity_fn_name truncate_dim parameters
state_dict fit train evaluate forward truncate_embeddings compile dtype""".split()


@pytest.fixture(scope="module")
def ours(minilm):
    return docjax.load(minilm)


@pytest.fixture(scope="module")
def theirs(minilm):
    return SentenceTransformer(str(minilm), device="cpu")


@pytest.mark.parametrize("name", USED)
def test_a_name_is_there_or_says_the_docjax_way(ours, theirs, name):
    if name not in dir(theirs):  # set in its __init__, or of another version
        assert hasattr(theirs, name) or name == "max_seq_length"
    if name in other_names.ELSEWHERE:
        assert not hasattr(ours, name)
        with pytest.raises(UserError, match=f"a model of docjax has no {name}: "):
            getattr(ours, name)
    else:
        getattr(ours, name)


def test_numbers_and_names_are_those_of_sentence_transformers(ours, theirs):
    assert ours.get_embedding_dimension() == theirs.get_embedding_dimension() == 384
    assert ours.get_sentence_embedding_dimension() == 384
    assert ours.max_seq_length == ours.get_max_seq_length() == theirs.max_seq_length
    assert ours.eval() is ours and ours.device == "cpu"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        ours.nothing  # noqa: B018


def test_a_model_is_never_changed(ours):
    with pytest.raises(UserError, match=r"max_seq_length cannot be set, .*segments=1"):
        ours.max_seq_length = 128
    with pytest.raises(UserError, match=r"params cannot be set, .*model.replace"):
        ours.params = {}
    for other in (copy.copy(ours), pickle.loads(pickle.dumps(ours))):
        assert other.limits == ours.limits and other.source == ours.source


def test_similarities_are_those_of_sentence_transformers(ours, theirs):
    a, b = ours.encode(TEXTS), ours.encode(TEXTS[::-1])
    for name in ("similarity", "similarity_pairwise"):
        expected = getattr(theirs, name)(a, b).numpy()
        for x, y in (
            (a, b),
            (torch.from_numpy(a), torch.from_numpy(b)),
            (list(a), list(b)),
            (jnp.asarray(a), b.tolist()),
        ):
            found = getattr(ours, name)(x, y)
            np.testing.assert_allclose(found, expected, atol=1e-6)
    assert ours.similarity(a[0], b[0]).shape == (1, 1)
    assert ours.similarity_pairwise(a[0], b[0]).shape == (1,)


def test_vectors_that_cannot_be_compared_are_one_line(ours):
    vectors = ours.encode(TEXTS)
    for ask in (ours.similarity, ours.similarity_pairwise):
        with pytest.raises(UserError, match="vectors of 384 and of 3 numbers cannot"):
            ask(vectors, vectors[:, :3])
        for wrong in (None, "a", TEXTS, [vectors, vectors], {}):
            with pytest.raises(UserError, match="is no vectors: give what encode"):
                ask(vectors, wrong)
    with pytest.raises(UserError, match="3 and 2 vectors are no pairs: give as many"):
        ours.similarity_pairwise(vectors, vectors[:2])


def test_a_model_shows_itself_in_five_lines(ours, minilm):
    lines = repr(ours).splitlines()
    assert len(lines) == 5 and lines[0] == f"DocumentModel {minilm}"
    assert "6 layers; each of at most 256 tokens" in lines[1]
    assert "all segments" in lines[2] and "384 numbers, compared by cosine" in lines[3]
    assert ours._repr_html_().count("<tr>") == 5
    assert repr(ours.replace(params=ours.params)).splitlines()[0] == "DocumentModel"


@pytest.mark.parametrize("name", ["save_pretrained", "save", "push_to_hub"])
def test_every_argument_of_saving_has_an_answer(ours, theirs, name):
    theirs_are = set(inspect.signature(getattr(theirs, name)).parameters)
    ours_are = set(inspect.signature(getattr(ours, name)).parameters)
    known = face.PUSHING if name == "push_to_hub" else face.SAVING
    assert theirs_are <= ours_are | known.keys()
    for argument in [*known, "no_such"]:
        line = "has no argument" if argument == "no_such" else "is not offered: docjax"
        with pytest.raises(UserError, match=line):
            getattr(ours, name)("a/b", **{argument: "else"})


def test_a_saved_model_is_loaded_by_both(run, tmp_path):
    model = docjax.load(run)
    folder = model.save_pretrained(tmp_path / "saved")
    np.testing.assert_allclose(
        docjax.load(folder).encode(TEXTS), model.encode(TEXTS), atol=1e-5
    )
    other = SentenceTransformer(str(folder), trust_remote_code=True, device="cpu")
    np.testing.assert_allclose(other.encode(TEXTS), model.encode(TEXTS), atol=1e-4)
    with pytest.raises(UserError, match="saved exists: remove it"):
        model.save_pretrained(folder)


@pytest.fixture
def fake(monkeypatch):
    """A hub on this machine, which keeps what is committed; `refuse` is a status."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            state["calls"].append((self.path, self.headers.get("Authorization")))
            if state["refuse"]:
                self.answer(state["refuse"], {"error": "refused"})
            elif self.path == "/api/repos/create":
                state["made"] = json.loads(body)
                self.answer(200, {"url": f"{address}/me/mine", "id": "me/mine"})
            elif "/preupload/" in self.path:
                files = json.loads(body)["files"]
                modes = [
                    {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False}
                    for f in files
                ]
                self.answer(200, {"files": modes})
            elif "/commit/" in self.path:
                for line in map(json.loads, body.splitlines()):
                    value = line["value"]
                    if line["key"] == "file":
                        state["files"][value["path"]] = base64.b64decode(
                            value["content"]
                        )
                    elif line["key"] == "header":
                        state["message"] = value["summary"]
                url = f"{address}/me/mine/commit/0123"
                self.answer(200, {"commitUrl": url, "commitOid": "0123"})
            else:
                self.answer(200, {})

        def do_GET(self):
            self.answer(200, {"siblings": [], "id": "me/mine", "sha": "0"})

        def answer(self, status, content):
            raw = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

    state = {"calls": [], "files": {}, "refuse": 0}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.hf_api.constants.ENDPOINT", address)
    huggingface_hub.utils._http.close_session()
    yield state
    server.shutdown()
    server.server_close()
    huggingface_hub.utils._http.close_session()


def test_a_model_is_pushed_to_the_hub(run, fake, tmp_path):
    model = docjax.load(run)
    url = model.push_to_hub(
        "me/mine", token="hf_x", private=True, commit_message="Mine"
    )
    assert url.endswith("/me/mine/commit/0123")
    made = fake["made"]  # versions of the library say it in two ways
    assert made.get("private") or made.get("visibility") == "private"
    assert fake["message"] == "Mine"
    assert {token for _, token in fake["calls"]} == {"Bearer hf_x"}
    for name, raw in fake["files"].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(raw)
    again = docjax.load(tmp_path)
    np.testing.assert_allclose(again.encode(TEXTS), model.encode(TEXTS), atol=1e-5)
    assert "# mine" in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize(
    ("status", "line"),
    [(401, "give token="), (409, "exist_ok=True"), (404, "check the name and the net")],
)
def test_what_the_hub_refuses_is_one_line(fake, tmp_path, status, line):
    fake["refuse"] = status
    (tmp_path / "a").write_text("a")
    with pytest.raises(UserError, match=f"me/mine: the hub at http.*{line}") as error:
        hub.push(
            tmp_path,
            "me/mine",
            token="hf_x",
            private=None,
            message=None,
            exist_ok=False,
            revision=None,
            create_pr=False,
        )
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["", "a/b/c", "a b", None, 5, "-x", "a" * 200])
def test_a_wrong_name_is_refused_before_anything_is_written(ours, name):
    with pytest.raises(UserError, match="repo_id .*give USER/NAME"):
        ours.push_to_hub(name)
