"""A pickle is never run: not by any known trick, and not by any line of the converter."""

import ast
import subprocess
import sys
from pathlib import Path

import diptych.convert

from .pickle_bytes import archive, call, dictionary, legacy, name, pickled, tensor, text

# What published attacks on pickles call.
GADGETS = """
os.system os.popen os.execv os.spawnl os.remove os.rmdir os.kill posix.system nt.system
subprocess.Popen subprocess.call subprocess.run subprocess.check_output pty.spawn builtins.eval
builtins.exec builtins.__import__ builtins.compile builtins.open builtins.getattr
builtins.setattr builtins.map __builtin__.eval __builtin__.execfile runpy.run_path
runpy._run_code importlib.import_module imp.load_source timeit.timeit code.interact pdb.run
cProfile.run profile.run bdb.Bdb.run doctest.debug_script pickle.loads _pickle.loads
marshal.loads shelve.open dill.loads joblib.load types.FunctionType types.CodeType
operator.attrgetter operator.methodcaller functools.partial functools.reduce ctypes.CDLL
ctypes.util.find_library socket.socket shutil.rmtree webbrowser.open urllib.request.urlopen
requests.get http.server.test multiprocessing.Process asyncio.create_subprocess_shell
signal.raise_signal sys.exit torch.load torch.hub.load torch.jit.load torch.serialization.load
torch.save torch.utils.cpp_extension.load torch.distributed.rpc.rpc_sync torch.compile
torch.utils.collect_env.run torch.storage._load_from_bytes torch._utils._import_dotted_name
numpy.load numpy.testing._private.utils.runstring numpy.memmap numpy.f2py.main pip.main
pip._internal.main venv.create ensurepip.bootstrap idlelib.pyshell.main logging.config.listen
tempfile.NamedTemporaryFile copyreg._reconstructor pydoc.pipepager
"""


def payloads() -> list[bytes]:
    """Every gadget, made in every way that a pickle can make something, in every kind of file."""
    files = []
    argument = text("true")
    for gadget in GADGETS.split():
        module, _, attribute = gadget.rpartition(".")
        called = call(module, attribute, argument)
        for body in (
            called,
            b"(" + name(module, attribute) + argument + b"o",
            b"(" + argument + f"i{module}\n{attribute}\n".encode(),
            name(module, attribute) + b"(" + argument + b"t\x81",
            text(module) + text(attribute) + b"\x93(" + argument + b"tR",
        ):
            files.append(archive(dictionary(("w", tensor()), ("x", body))))
        files.append(archive(called))
        files.append(legacy(called, keys=()))
        files.append(pickled(called))
    return files


AUDITED_RUN = """
import sys
from diptych.formats.find import find_container
from diptych.spec import CheckpointError
events = []
recording = False
def record(event, arguments):
    if recording:
        events.append((event, arguments))
sys.addaudithook(record)
refused = 0
for path in sys.argv[1:]:
    for warm in (True, False):
        recording = not warm
        try:
            find_container(path)
        except CheckpointError:
            refused += not warm
        recording = False
foreign = [event for event in events if event[0] != "open" or event[1][0] not in sys.argv]
print(refused, foreign)
"""


def test_no_payload_does_anything_but_open_its_file(tmp_path):
    files = payloads()
    assert len(files) > 500
    paths = []
    for index, data in enumerate(files):
        paths.append(str(tmp_path / f"{index}.pt"))
        Path(paths[-1]).write_bytes(data)
    run = subprocess.run(
        [sys.executable, "-c", AUDITED_RUN, *paths], capture_output=True, text=True
    )
    assert run.stderr == ""
    assert run.stdout == f"{len(files)} []\n"


def test_nothing_in_the_converter_can_run_a_pickle():
    forbidden_calls = {"eval", "exec", "compile", "__import__"}
    forbidden_modules = {"pickle", "_pickle", "marshal", "shelve", "dill", "torch", "jax"}
    for path in Path(diptych.convert.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Name):
                assert node.id not in forbidden_calls, path
            elif isinstance(node, ast.Import):
                assert not forbidden_modules & {each.name.split(".")[0] for each in node.names}, (
                    path
                )
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                assert (node.module or "").split(".")[0] not in forbidden_modules, path
