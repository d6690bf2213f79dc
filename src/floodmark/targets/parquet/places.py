"""Where the files of a table are: a folder or an object store, read and written without Spark. Names are relative to
the table, with slashes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol

from floodmark.errors import ConfigError, MissingExtra, TargetError
from floodmark.targets.folder import check_folder


class Place(Protocol):
    address: str
    """As Spark writes it."""

    def create(self, name: str, content: bytes) -> bool:
        """Whole and lasting, or not at all; False where there is one already."""

    def read(self, name: str) -> bytes | None: ...

    def names(self, folder: str) -> list[str]:
        """Of the files right in it."""

    def written(self, folder: str) -> list[str]:
        """The Parquet files that Spark has just written into it, on all levels; they outlast a crash of the machine."""

    def remove(self, names: Iterable[str]) -> None:
        """Those that are there."""

    def remove_folder(self, folder: str) -> None: ...

    def check_writable(self) -> None: ...

    def strangers(self) -> list[str]:
        """What is beside our own folders."""


OURS = ("data", "_floodmark")


class LocalPlace:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.address = f"file://{folder}"  # not as a URI: Spark takes %20 for three characters of a name

    def create(self, name: str, content: bytes) -> bool:
        path = self._folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return self._created(path, content)
        except OSError as error:
            raise TargetError(f"{path} can't be written: {error.strerror or error}") from error

    def _created(self, path: Path, content: bytes) -> bool:
        draft = path.with_name(f".{token_hex(8)}")
        try:
            with draft.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, path)  # fails where it is there; a rename would replace it
        except FileExistsError:
            return False
        finally:
            draft.unlink(missing_ok=True)
        _sync_folder(path.parent)
        return True

    def read(self, name: str) -> bytes | None:
        try:
            return (self._folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def names(self, folder: str) -> list[str]:
        try:
            return [name for name in os.listdir(self._folder / folder) if not name.startswith(".")]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def written(self, folder: str) -> list[str]:
        found = []
        for parent, _, names in os.walk(self._folder / folder):
            for name in names:
                path = Path(parent, name)
                if not _is_data(name):
                    path.unlink()  # Spark's own remarks
                    continue
                with path.open("rb") as file:
                    os.fsync(file.fileno())
                found.append(path.relative_to(self._folder / folder).as_posix())
            _sync_folder(Path(parent))
        return found

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            path = self._folder / name
            path.unlink(missing_ok=True)
            for folder in path.relative_to(self._folder).parents[:-2]:
                try:
                    (self._folder / folder).rmdir()
                except OSError:
                    break  # not empty

    def remove_folder(self, folder: str) -> None:
        shutil.rmtree(self._folder / folder, ignore_errors=True)

    def check_writable(self) -> None:
        check_folder(self._folder)

    def strangers(self) -> list[str]:
        return [name for name in self.names("") if name not in OURS]


class BucketPlace:
    """Credentials, region and endpoint come from the environment, as for a state in a bucket."""

    def __init__(self, url: str) -> None:
        # What Spark calls s3 is another, long gone way to keep files there.
        self.address = f"s3a://{url.removeprefix('s3://')}" if url.startswith("s3://") else url
        self._url = url
        self._opened: Any = None

    @property
    def _bucket(self) -> Any:
        if self._opened is None:
            try:
                from obstore.store import from_url
            except ImportError as error:
                hint = "pip install 'floodmark[object-store]'"
                raise MissingExtra("obstore is not installed", hint=hint) from error
            try:
                self._opened = from_url(self._url)
            except Exception as error:
                raise ConfigError(f"{self._url} can't be opened: {_said(error)}") from error
        return self._opened

    def create(self, name: str, content: bytes) -> bool:
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        try:
            obstore.put(self._bucket, name, content, mode="create")
        except (AlreadyExistsError, PreconditionError):
            # Sent again because its answer got lost, it was in its own way.
            return self.read(name) == content
        except Exception as error:
            raise self._refusal("written", error) from error
        return True

    def read(self, name: str) -> bytes | None:
        import obstore

        try:
            return bytes(obstore.get(self._bucket, name).bytes())
        except FileNotFoundError:
            return None
        except Exception as error:
            raise self._refusal("read", error) from error

    def names(self, folder: str) -> list[str]:
        return [name for name in self._below(folder) if "/" not in name]

    def written(self, folder: str) -> list[str]:
        return [name for name in self._below(folder) if _is_data(name.rpartition("/")[2])]

    def remove(self, names: Iterable[str]) -> None:
        import obstore

        for name in names:
            try:
                obstore.delete(self._bucket, name)
            except FileNotFoundError:
                continue
            except Exception as error:
                raise self._refusal("changed", error) from error

    def remove_folder(self, folder: str) -> None:
        self.remove(f"{folder}/{name}" for name in self._below(folder))

    def check_writable(self) -> None:
        """Only a write would tell."""

    def strangers(self) -> list[str]:
        return []  # a listing of everything in the bucket, for a hint

    def _below(self, folder: str) -> list[str]:
        import obstore

        try:
            pages = obstore.list(self._bucket, f"{folder}/")
            return [str(found["path"]).removeprefix(f"{folder}/") for page in pages for found in page]
        except Exception as error:
            raise self._refusal("read", error) from error

    def _refusal(self, doing: str, error: Exception) -> TargetError:
        from obstore.exceptions import GenericError

        return TargetError(f"{self._url} can't be {doing}: {_said(error)}", transient=isinstance(error, GenericError))


def _is_data(name: str) -> bool:
    return name.endswith(".parquet") and not name.startswith((".", "_"))


def _said(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:400]


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
