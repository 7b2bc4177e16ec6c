"""hub/kubernetes: the pods that its values make, who sees what of the exchange, what is in an image, the grader's manifests.

There is no cluster here. The values are turned into KubeSpawner's configuration as Zero to JupyterHub 4 does it (its
files/hub/jupyterhub_config.py), and KubeSpawner itself makes the pods.
"""

import asyncio
import contextlib
import copy
import csv
import hashlib
import json
import os
import re
import shlex
import shutil
import string
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from autograder.errors import CourseError
from autograder.hub import kubernetes, ports

kubespawner = pytest.importorskip("kubespawner", reason="requires jupyterhub-kubespawner")

VALUES = {"COURSE": "amp", "IMAGE": "registry.example/amp", "TAG": "7", "TIMEZONE": "Europe/Zurich"}
GPU = {"gpu": "nvidia.com/gpu", "mig": "nvidia.com/mig-1g.10gb"}
PROFILES = ["cpu", *GPU]

# What chart 4.x calls in values.yaml, as far as our file goes there: names of maps, and None for what is left to us.
CHART = {
    "hub": {
        "resources": None,
        "concurrentSpawnLimit": None,
        "allowNamedServers": None,
        "config": None,
        "services": None,
        "loadRoles": None,
    },
    "proxy": {"service": {"type": None}, "https": {"enabled": None}, "chp": {"resources": None}},
    "singleuser": {
        "image": {"name": None, "tag": None, "pullPolicy": None},
        "cmd": None,
        "defaultUrl": None,
        "startTimeout": None,
        "uid": None,
        "fsGid": None,
        "allowPrivilegeEscalation": None,
        "serviceAccountName": None,
        "extraPodConfig": None,
        "extraEnv": None,
        "cpu": {"guarantee": None, "limit": None},
        "memory": {"guarantee": None, "limit": None},
        "profileList": None,
        "storage": {
            "capacity": None,
            "homeMountPath": None,
            "dynamic": {"storageAccessModes": None},
            "extraVolumes": None,
            "extraVolumeMounts": None,
        },
        "initContainers": None,
        "lifecycleHooks": {"postStart": None},
        "extraFiles": None,
        "cloudMetadata": {"blockWithIptables": None, "ip": None},
        "networkPolicy": {
            "enabled": None,
            "egressAllowRules": {
                "cloudMetadataServer": None,
                "dnsPortsCloudMetadataServer": None,
                "dnsPortsKubeSystemNamespace": None,
                "dnsPortsPrivateIPs": None,
                "nonPrivateIPs": None,
                "privateIPs": None,
            },
        },
    },
    "cull": {"enabled": None, "timeout": None, "every": None, "maxAge": None, "adminUsers": None, "users": None},
    "scheduling": {
        "userScheduler": {"enabled": None, "resources": None},
        "userPlaceholder": {"enabled": None, "replicas": None},
        "podPriority": {"enabled": None},
    },
    "prePuller": {"hook": {"enabled": None}, "continuous": {"enabled": None}},
}

# KubeSpawner's traits and the keys below `singleuser` that the chart sets them from.
TRAITS = {
    "start_timeout": "startTimeout",
    "image_pull_policy": "image.pullPolicy",
    "uid": "uid",
    "fs_gid": "fsGid",
    "service_account": "serviceAccountName",
    "lifecycle_hooks": "lifecycleHooks",
    "init_containers": "initContainers",
    "mem_limit": "memory.limit",
    "mem_guarantee": "memory.guarantee",
    "cpu_limit": "cpu.limit",
    "cpu_guarantee": "cpu.guarantee",
    "environment": "extraEnv",
    "profile_list": "profileList",
    "extra_pod_config": "extraPodConfig",
    "storage_capacity": "storage.capacity",
    "storage_access_modes": "storage.dynamic.storageAccessModes",
    "default_url": "defaultUrl",
}


def filled(name: str) -> str:
    return kubernetes.fill_in((kubernetes.FILES / name).read_text(encoding="utf-8"), VALUES)


@pytest.fixture(scope="module")
def values() -> dict:
    return yaml.safe_load(filled("values.yaml"))


@pytest.fixture(scope="module")
def manifests() -> dict[tuple[str, str], dict]:
    documents = [each for name in kubernetes.FILLED[1:] for each in yaml.safe_load_all(filled(name))]
    return {(each["kind"], each["metadata"]["name"]): each for each in documents}


def configuration(values: dict):
    """KubeSpawner's configuration out of the chart's values; what the chart's defaults add that a pod shows is added."""
    from traitlets.config import Config

    singleuser = copy.deepcopy(values["singleuser"])

    def get(path: str):
        found = singleuser
        for key in path.split("."):
            found = found.get(key) if found else None
        return found

    c = Config()
    for trait, key in TRAITS.items():
        if get(key) is not None:
            c.KubeSpawner[trait] = get(key)
    c.KubeSpawner.cmd = singleuser["cmd"]
    c.KubeSpawner.allow_privilege_escalation = singleuser["allowPrivilegeEscalation"]
    c.KubeSpawner.image = f"{singleuser['image']['name']}:{singleuser['image']['tag']}"
    c.KubeSpawner.extra_labels = {"hub.jupyter.org/network-access-hub": "true"}
    home = "volume-{user_server}"
    c.KubeSpawner.volumes = [{"name": home, "persistentVolumeClaim": {"claimName": "{pvc_name}"}}]
    c.KubeSpawner.volume_mounts = [{"mountPath": get("storage.homeMountPath"), "name": home, "subPath": None}]
    files = singleuser["extraFiles"]
    secret = {"secretName": "singleuser", "items": [{"key": key, "path": key} for key in files]}
    c.KubeSpawner.volumes.append({"name": "files", "secret": secret})
    c.KubeSpawner.volume_mounts.extend(
        {"mountPath": file["mountPath"], "subPath": key, "name": "files"} for key, file in files.items()
    )
    c.KubeSpawner.volumes.extend(get("storage.extraVolumes"))
    c.KubeSpawner.volume_mounts.extend(get("storage.extraVolumeMounts"))
    for name, traits in values["hub"]["config"].items():
        c[name].update(copy.deepcopy(traits))
    return c


def pod_of(values: dict, profile: str | None, user: str = "ada") -> dict:
    """The manifest of a student's pod as it goes to Kubernetes, from KubeSpawner."""
    from kubernetes_asyncio.client import ApiClient
    from kubespawner import KubeSpawner

    async def make() -> dict:
        spawner = KubeSpawner(config=configuration(values), _mock=True, user=Person(user))
        spawner.user_options = {"profile": profile} if profile else {}
        await spawner.load_user_options()
        async with ApiClient() as client:
            return client.sanitize_for_serialization(await spawner.get_pod_manifest())

    return asyncio.run(make())


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch):
    """KubeSpawner looks for a cluster when it is made, and asks it nothing for a manifest."""
    monkeypatch.setattr("kubespawner.spawner.load_config", lambda **options: None)
    monkeypatch.setattr("kubespawner.spawner.shared_client", lambda kind: None)


class Person:
    id, url = 1, "/user/someone"

    def __init__(self, name: str) -> None:
        self.name = name
        self.escaped_name = name


@pytest.fixture(scope="module")
def pods(values) -> dict[str, dict]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kubespawner.spawner.load_config", lambda **options: None)
        patch.setattr("kubespawner.spawner.shared_client", lambda kind: None)
        return {profile: pod_of(values, profile) for profile in PROFILES}


def server(pod: dict) -> dict:
    (container,) = pod["spec"]["containers"]
    return container


def environment(container: dict) -> dict[str, str]:
    return {each["name"]: each.get("value") for each in container["env"]}


def mounts(container: dict, volume: str = "exchange") -> dict[str, dict]:
    return {each["mountPath"]: each for each in container["volumeMounts"] if each["name"] == volume}


# The values and the chart


def unknown(values: dict, known: dict | None, path: str = "") -> list[str]:
    if known is None:
        return []
    wrong = [f"{path}{key}" for key in values if key not in known]
    nested = [(values[key], known[key], f"{path}{key}.") for key in values if isinstance(known.get(key), dict)]
    return wrong + [each for one in nested for each in unknown(*one)]


def test_every_key_is_one_of_the_charts(values):
    assert unknown(values, CHART) == []
    assert unknown({"singleuser": {"storage": {"extraVolume": []}}}, CHART) == ["singleuser.storage.extraVolume"]


def test_every_key_that_a_pod_shows_is_mapped_to_a_trait_of_kubespawner():
    traits = kubespawner.KubeSpawner.class_trait_names()
    assert set(TRAITS) <= set(traits)


@pytest.mark.skipif(shutil.which("helm") is None, reason="requires helm")
@pytest.mark.skipif("Z2JH_CHART" not in os.environ, reason="requires Z2JH_CHART: the path of chart jupyterhub 4.x")
def test_helm_renders_the_chart_with_these_values(tmp_path):
    kubernetes.write(tmp_path, VALUES, ["ada"], ["grace"])
    files = [
        option for name in ("values", "people", "secret-values") for option in ("--values", tmp_path / f"{name}.yaml")
    ]
    done = subprocess.run(["helm", "template", "hub", os.environ["Z2JH_CHART"], *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "kind: NetworkPolicy" in done.stdout


# A student's pod


def test_a_pod_without_a_choice_is_the_cpu_profiles(values, pods):
    assert pod_of(values, None) == pods["cpu"]


def test_a_profile_that_is_not_offered_is_refused(values):
    with pytest.raises(ValueError, match="shared"):
        pod_of(values, "shared")


@pytest.mark.parametrize(
    ("profile", "limits", "requests", "image"),
    [
        ("cpu", {"cpu": 2, "memory": 4 << 30}, {"cpu": 0.5, "memory": 2 << 30}, "registry.example/amp-student:7"),
        (
            "gpu",
            {"cpu": 4, "memory": 16 << 30, "nvidia.com/gpu": "1"},
            {"cpu": 2, "memory": 16 << 30},
            "registry.example/amp-student:7-cuda",
        ),
        (
            "mig",
            {"cpu": 4, "memory": 16 << 30, "nvidia.com/mig-1g.10gb": "1"},
            {"cpu": 2, "memory": 16 << 30},
            "registry.example/amp-student:7-cuda",
        ),
    ],
)
def test_a_profile_gives_its_share_and_no_more(pods, profile, limits, requests, image):
    container = server(pods[profile])
    assert container["resources"] == {"limits": limits, "requests": requests}
    assert container["image"] == image


@pytest.mark.parametrize("profile", PROFILES)
def test_pytorch_uses_as_many_threads_as_the_pod_has_cores(pods, profile):
    container = server(pods[profile])
    assert int(environment(container)["OMP_NUM_THREADS"]) == container["resources"]["limits"]["cpu"]


def test_a_pod_that_asks_for_no_gpu_sees_none_and_does_not_run_on_a_gpu_node(pods):
    assert environment(server(pods["cpu"]))["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "tolerations" not in pods["cpu"]["spec"]


@pytest.mark.parametrize("profile", GPU)
def test_a_pod_with_a_gpu_leaves_it_to_the_device_plugin_which_one(pods, profile):
    assert not [name for name in environment(server(pods[profile])) if name.startswith(("NVIDIA", "CUDA"))]
    (toleration,) = pods[profile]["spec"]["tolerations"]
    assert toleration == {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


@pytest.mark.parametrize("profile", PROFILES)
def test_shared_memory_is_a_volume_that_fits_into_the_pods_memory(pods, profile):
    spec = pods[profile]["spec"]
    (shm,) = [each["emptyDir"] for each in spec["volumes"] if each["name"] == "shm"]
    assert shm == {"medium": "Memory", "sizeLimit": "2Gi"}
    assert set(mounts(server(pods[profile]), "shm")) == {"/dev/shm"}
    assert server(pods[profile])["resources"]["limits"]["memory"] > 2 << 30


@pytest.mark.parametrize("profile", PROFILES)
def test_a_pod_has_no_privilege_on_the_node_and_no_account_on_the_cluster(pods, profile):
    spec = pods[profile]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    assert "serviceAccountName" not in spec
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    containers = [*spec["containers"], *spec["initContainers"]]
    assert len(containers) == 2
    for container in containers:
        context = container["securityContext"]
        assert context["runAsUser"] == 1000 and context["runAsGroup"] == 100 and context["runAsNonRoot"] is True
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not context.get("privileged")


@pytest.mark.parametrize("profile", PROFILES)
def test_a_pod_mounts_the_home_the_exchange_and_configuration_and_nothing_else(pods, profile):
    kinds = [{key for key in each if key != "name"} for each in pods[profile]["spec"]["volumes"]]
    assert sorted(map(sorted, kinds)) == [
        ["emptyDir"],
        ["persistentVolumeClaim"],
        ["persistentVolumeClaim"],
        ["secret"],
    ]
    text = json.dumps(pods[profile])
    assert "exchange-amp" in text
    assert "course-amp" not in text and "grader-amp" not in text


# The exchange

STRANGE = ["ada", "j.doe@example.org", "ada-", "-", "..", "ünïcode", "{pvc_name}", "a b", "x" * 60, "ada--lab", "1st"]


@pytest.mark.parametrize("student", STRANGE)
def test_a_student_sees_of_the_exchange_what_is_everybodys_and_what_is_theirs(values, student):
    container = server(pod_of(values, "cpu", student))
    folder = kubernetes.folder(student)
    found = {path: (each["subPath"], each.get("readOnly", False)) for path, each in mounts(container).items()}
    assert found == {
        "/srv/exchange/amp/outbound": ("amp/outbound", True),
        "/srv/exchange/amp/inbound": (f"amp/inbound/{folder}", False),
        "/srv/exchange/amp/feedback": (f"amp/feedback/{folder}", True),
    }


@pytest.mark.parametrize("student", STRANGE)
def test_what_is_mounted_is_made_before_the_server_starts(values, student):
    pod = pod_of(values, "cpu", student)
    (first,) = pod["spec"]["initContainers"]
    assert first["command"][:2] == ["mkdir", "-p"]
    made = {path.removeprefix("/exchange/") for path in first["command"][2:]}
    assert made == {each["subPath"] for each in mounts(server(pod)).values()}
    assert [each["mountPath"] for each in first["volumeMounts"]] == ["/exchange"]


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40))
def test_a_folder_is_named_as_kubespawner_names_it_and_the_name_can_be_read_back(name):
    from kubespawner.slugs import escape_slug

    folder = kubernetes.folder(name)
    assert folder == escape_slug(name)
    assert re.fullmatch(r"[-a-z0-9]+", folder)
    assert kubernetes.username(folder) == name


@given(st.text(string.ascii_letters + string.digits + "-_.@", max_size=12))
def test_a_folder_that_stands_for_a_name_is_the_folder_of_that_name(folder):
    try:
        name = kubernetes.username(folder)
    except CourseError:
        return
    assert kubernetes.folder(name) == folder


@pytest.mark.parametrize("folder", ["", "Ada", "ada-", "ada-4", "ada-4G", "-c3", "a.b", "-61da", "ada-2D"])
def test_a_folder_that_nobodys_server_mounts_is_nobodys(folder):
    with pytest.raises(CourseError, match="not the folder of a student"):
        kubernetes.username(folder)


def test_a_student_fetches_and_hands_in_through_the_mounts(values, tmp_path):
    student = "j.doe@example.org"
    disk, seen, home = tmp_path / "disk", tmp_path / "srv" / "exchange", tmp_path / "home"
    for mount in mounts(server(pod_of(values, "cpu", student))).values():
        there = tmp_path / mount["mountPath"].removeprefix("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        (disk / mount["subPath"]).mkdir(parents=True)
        there.symlink_to(disk / mount["subPath"])
    released = disk / "amp" / "outbound" / "01_range"
    released.mkdir()
    released.joinpath("01_range.ipynb").write_text("{}", encoding="utf-8")
    home.mkdir()
    config = values["singleuser"]["extraFiles"]["nbgrader"]["stringData"].replace("/srv/exchange", str(seen))
    config += f"\nc.Exchange.cache = {str(tmp_path / 'cache')!r}\nc.CourseDirectory.root = {str(home)!r}\n"
    # Whose courses somebody takes is asked of the hub, and there is none.
    config += "c.Authenticator.plugin_class = 'nbgrader.auth.base.NoAuthPlugin'\n"
    home.joinpath("nbgrader_config.py").write_text(config, encoding="utf-8")
    env = {**os.environ, "JUPYTERHUB_USER": student, "JUPYTER_CONFIG_PATH": "", "HOME": str(home)}
    script = (
        "from nbgrader.apps.nbgraderapp import NbGraderApp\n"
        "for command in ('fetch_assignment', 'submit'):\n"
        "    NbGraderApp.clear_instance()\n"
        "    NbGraderApp.launch_instance([command, '01_range'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=home, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    (folder,) = (disk / "amp" / "inbound").iterdir()
    assert kubernetes.username(folder.name) == student
    (submission,) = folder.iterdir()
    assert (submission / "01_range.ipynb").is_file()


# What a server is configured to do


def test_idle_kernels_go_even_with_an_open_tab_and_before_their_server(values):
    from jupyter_server.services.kernels.kernelmanager import MappingKernelManager

    config = values["singleuser"]["extraFiles"]["server"]["data"]["MappingKernelManager"]
    manager = MappingKernelManager(**config)
    assert (manager.cull_connected, manager.cull_busy) == (True, False)
    assert 0 < manager.cull_interval < manager.cull_idle_timeout < values["cull"]["timeout"] < values["cull"]["maxAge"]


def test_students_have_neither_formgrader_nor_the_list_of_courses(values):
    prefix = Path(sys.prefix)
    (shipped,) = (prefix / "etc" / "jupyter" / "jupyter_server_config.d").glob("nbgrader*.json")
    extensions = json.loads(shipped.read_text(encoding="utf-8"))["ServerApp"]["jpserver_extensions"]
    files = values["singleuser"]["extraFiles"]
    on = {**extensions, **files["server"]["data"]["ServerApp"]["jpserver_extensions"]}
    assert set(on) == {*extensions, "autograder.hub.assignment_list"}
    assert {name for name, enabled in on.items() if enabled} == {
        "autograder.hub.assignment_list",
        "nbgrader.server_extensions.validate_assignment",
    }
    plugins = "".join(
        path.read_text(encoding="utf-8")
        for path in (prefix / "share/jupyter/labextensions/@jupyter/nbgrader/static").glob("*.js")
    )
    off = set(files["lab"]["data"]["disabledExtensions"])
    assert off == {f"@jupyter/nbgrader:{name}" for name in ("formgrader", "course-list", "create-assignment")}
    assert all(f'"{name}"' in plugins for name in off)
    path = environment_of(values)["JUPYTER_CONFIG_PATH"]
    assert all(file["mountPath"].startswith(f"{path}/") for file in files.values())


def environment_of(values: dict) -> dict:
    return values["singleuser"]["extraEnv"]


def test_due_dates_are_read_and_written_in_one_time_zone(values, manifests):
    texts = [
        values["singleuser"]["extraFiles"]["nbgrader"]["stringData"],
        manifests["ConfigMap", "grader-amp"]["data"]["nbgrader_config.py"],
    ]
    for text in texts:
        c = loaded(text)
        assert c.HubExchange.submission_bytes == 20_000_000
        assert c.Exchange.timezone == c.NbGraderAPI.timezone == "Europe/Zurich"
        assert (c.CourseDirectory.course_id, c.Exchange.root) == ("amp", "/srv/exchange")


def loaded(text: str):
    from traitlets.config import Config

    c = Config()
    exec(text, {"get_config": lambda: c})
    return c


def test_students_reach_the_hub_the_proxy_and_dns_alone(values):
    policy = values["singleuser"]["networkPolicy"]
    assert policy["enabled"] is True
    allowed = {name for name, allowed in policy["egressAllowRules"].items() if allowed}
    assert allowed == {"dnsPortsKubeSystemNamespace", "dnsPortsPrivateIPs"}
    assert values["singleuser"]["cloudMetadata"]["blockWithIptables"] is False


def test_lessons_are_brought_into_a_home_and_a_students_changes_stay(tmp_path, capsys):
    image, home = tmp_path / "image", tmp_path / "home"
    image.mkdir()
    for name in ("1", "2"):
        (image / f"{name}.txt").write_text("first", encoding="utf-8")
    assert kubernetes.main(["deliver", str(image), str(home)]) == 0
    (home / "1.txt").write_text("mine", encoding="utf-8")
    for name in ("1", "2"):
        (image / f"{name}.txt").write_text("second", encoding="utf-8")
    assert kubernetes.main(["deliver", str(image), str(home)]) == 0
    assert "1.txt: you changed it" in capsys.readouterr().out
    assert [(home / f"{name}.txt").read_text(encoding="utf-8") for name in ("1", "2")] == ["mine", "second"]


def test_the_hook_that_brings_the_lessons_cannot_lock_a_student_out(values, tmp_path):
    command = values["singleuser"]["lifecycleHooks"]["postStart"]["exec"]["command"]
    assert command[:2] == ["sh", "-c"]
    (tmp_path / "tmp").mkdir()
    (tmp_path / "home").mkdir()
    script = command[2].replace("/tmp/", f"{tmp_path}/tmp/").replace("/home/jovyan", f"{tmp_path}/home")
    script = script.replace("/opt/course", f"{tmp_path}/missing").replace("python ", f"{sys.executable} ")
    assert subprocess.run(["sh", "-c", script]).returncode == 0
    assert "There are no lessons in" in (tmp_path / "home" / "LESSONS-NOT-UPDATED.txt").read_text(encoding="utf-8")
    shutil.rmtree(tmp_path / "home")
    assert subprocess.run(["sh", "-c", script], stderr=subprocess.DEVNULL).returncode == 0


# Who may what


def test_tokens_carry_these_scopes_and_no_others(values):
    roles = values["hub"]["loadRoles"]
    assert {name: set(role["scopes"]) for name, role in roles.items()} == {
        "server": {
            "users:activity!user",
            "access:servers!server",
            "read:users:name!user",
            "read:users:groups!user",
            "list:services",
            "read:services",
        },
        "formgrade-amp": {"access:services!service=amp", "list:services", "read:services!service=amp"},
        "grader-amp": {
            "read:users:name!user=grader-amp",
            "read:users:groups!user=grader-amp",
            "list:groups!group=nbgrader-amp",
            "groups!group=nbgrader-amp",
        },
    }
    assert roles["formgrade-amp"]["groups"] == ["formgrade-amp"]
    assert roles["grader-amp"]["services"] == ["amp"]
    assert values["hub"]["services"] == {"amp": {"url": "http://grader-amp:8888", "oauth_no_confirm": True}}


def test_nobody_can_log_in_before_a_way_was_chosen(values):
    from jupyterhub.auth import NullAuthenticator
    from jupyterhub.traitlets import EntryPointType
    from traitlets import HasTraits

    class Hub(HasTraits):
        authenticator_class = EntryPointType(entry_point_group="jupyterhub.authenticators")

    assert Hub(
        authenticator_class=values["hub"]["config"]["JupyterHub"]["authenticator_class"]
    ).authenticator_class is (NullAuthenticator)


def test_the_roster_says_who_is_who():
    config = kubernetes.people("amp", ["bob", "ada"], ["grace"])["hub"]["config"]
    assert config["Authenticator"]["allowed_users"] == ["ada", "bob", "grace"]
    assert config["JupyterHub"]["load_groups"] == {
        "formgrade-amp": {"users": ["grace", "grader-amp"]},
        "nbgrader-amp": {"users": ["ada", "bob"]},
    }


@pytest.mark.parametrize(
    ("students", "instructors", "said"),
    [
        (["ada"], [], "no instructor"),
        (["grader-amp"], ["grace"], "no person can have it"),
        (["ada", "grace"], ["grace"], "grace: student and instructor"),
    ],
)
def test_a_roster_that_gives_somebody_too_much_is_refused(students, instructors, said):
    with pytest.raises(CourseError, match=said):
        kubernetes.people("amp", students, instructors)


# The grader, the volumes, the quota


@pytest.fixture(scope="module")
def grader(manifests) -> dict:
    return manifests["Deployment", "grader-amp"]["spec"]["template"]["spec"]


def test_the_manifests_are_all_there(manifests):
    assert set(manifests) == {
        ("PersistentVolumeClaim", "exchange-amp"),
        ("PersistentVolumeClaim", "course-amp"),
        ("ResourceQuota", "course-amp"),
        ("LimitRange", "course-amp"),
        ("ServiceAccount", "grader-amp"),
        ("ConfigMap", "grader-amp"),
        ("Deployment", "grader-amp"),
        ("Service", "grader-amp"),
        ("NetworkPolicy", "grader-amp"),
    }


def misfits(data, kind: str, path: str = "") -> list[str]:
    """What the Kubernetes API has no place for, or another type: by the models of its Python client."""
    from kubernetes_asyncio.client import models

    if listed := re.fullmatch(r"list\[(.+)\]", kind):
        if not isinstance(data, list):
            return [f"{path}: not a list"]
        return [each for index, one in enumerate(data) for each in misfits(one, listed[1], f"{path}[{index}]")]
    if mapped := re.fullmatch(r"dict\(str, (.+)\)|dict\[str, (.+)\]", kind):
        if not isinstance(data, dict):
            return [f"{path}: not a map"]
        return [each for key, one in data.items() for each in misfits(one, mapped[1] or mapped[2], f"{path}.{key}")]
    plain = {"str": str, "int": int, "bool": bool, "object": (str, int)}
    if kind in plain:
        fits = isinstance(data, plain[kind]) and (kind != "int" or not isinstance(data, bool))
        return [] if fits else [f"{path}: {data!r} is no {kind}"]
    model = getattr(models, kind)
    fields = {name: model.openapi_types[attribute] for attribute, name in model.attribute_map.items()}
    return [f"{path}.{key}" for key in data if key not in fields] + [
        each for key, one in data.items() if key in fields for each in misfits(one, fields[key], f"{path}.{key}")
    ]


def test_the_manifests_are_what_the_kubernetes_api_knows(manifests):
    for (kind, name), document in manifests.items():
        assert misfits(document, f"V1{kind}", f"{kind}/{name}") == []
    broken = copy.deepcopy(manifests["Deployment", "grader-amp"])
    broken["spec"]["template"]["spec"]["hostUser"] = False
    broken["spec"]["replicas"] = "1"
    assert misfits(broken, "V1Deployment") == [".spec.replicas: '1' is no int", ".spec.template.spec.hostUser"]


@pytest.mark.skipif(shutil.which("kubeconform") is None, reason="requires kubeconform")
@pytest.mark.parametrize("name", kubernetes.FILLED[1:])
def test_kubeconform_finds_nothing(name):
    done = subprocess.run(["kubeconform", "-strict", "-"], input=filled(name), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_grader_is_nobody_on_the_cluster_and_on_the_node(manifests, grader):
    assert grader["serviceAccountName"] == "grader-amp"
    assert grader["automountServiceAccountToken"] is False
    assert manifests["ServiceAccount", "grader-amp"]["automountServiceAccountToken"] is False
    assert grader["hostUsers"] is False
    assert grader["securityContext"]["runAsNonRoot"] is True
    for container in [*grader["containers"], *grader["initContainers"]]:
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_what_the_sandbox_needs_is_given_to_the_grader_alone_and_only_with_a_user_namespace(grader, pods):
    context = server({"spec": grader})["securityContext"]
    assert context["procMount"] == "Unmasked"
    assert context["seccompProfile"] == context["appArmorProfile"] == {"type": "Unconfined"}
    assert grader["hostUsers"] is False
    assert not any(word in json.dumps(pods) for word in ("Unmasked", "Unconfined", "hostUsers"))


def test_the_graders_token_comes_from_its_secret_and_is_the_hubs(grader):
    (token,) = [each for each in server({"spec": grader})["env"] if "TOKEN" in each["name"]]
    reference = token["valueFrom"]["secretKeyRef"]
    hub, secret = kubernetes.tokens("amp", "0123")
    assert reference["name"] == secret["metadata"]["name"]
    assert secret["stringData"][reference["key"]] == hub["hub"]["services"]["amp"]["apiToken"] == "0123"
    assert misfits(secret, "V1Secret") == []


def test_the_gradebook_is_one_pods_and_the_exchange_everybodys(manifests):
    modes = {
        name: manifests["PersistentVolumeClaim", name]["spec"]["accessModes"] for name in ("course-amp", "exchange-amp")
    }
    assert modes == {"course-amp": ["ReadWriteOnce"], "exchange-amp": ["ReadWriteMany"]}
    assert manifests["Deployment", "grader-amp"]["spec"]["strategy"] == {"type": "Recreate"}


def test_the_grader_is_reached_through_the_proxy_and_reaches_the_hub_alone(manifests, values):
    policy = manifests["NetworkPolicy", "grader-amp"]["spec"]
    labels = manifests["Deployment", "grader-amp"]["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    assert manifests["Service", "grader-amp"]["spec"]["selector"].items() <= labels.items()
    (ingress,) = policy["ingress"]
    assert [each["podSelector"]["matchLabels"]["component"] for each in ingress["from"]] == ["proxy", "hub"]
    hub, dns = policy["egress"]
    assert hub == {"ports": [{"port": 8081}], "to": [{"podSelector": {"matchLabels": {"component": "hub"}}}]}
    assert {each["port"] for each in dns["ports"]} == {53}
    assert labels["hub.jupyter.org/network-access-hub"] == "true"
    url = values["hub"]["services"]["amp"]["url"]
    (port,) = manifests["Service", "grader-amp"]["spec"]["ports"]
    assert url == f"http://grader-amp:{port['port']}"


def test_the_quota_counts_the_gpus_that_the_profiles_ask_for(manifests, pods):
    hard = manifests["ResourceQuota", "course-amp"]["spec"]["hard"]
    asked = {
        name for pod in pods.values() for name in server(pod)["resources"]["limits"] if name.startswith("nvidia.com/")
    }
    assert {f"requests.{name}" for name in asked} == {name for name in hard if "nvidia.com/" in name}
    assert len(asked) == 2


def test_a_pod_that_names_no_memory_gets_a_default_since_the_quota_would_refuse_it(manifests):
    hard = manifests["ResourceQuota", "course-amp"]["spec"]["hard"]
    (container, _) = manifests["LimitRange", "course-amp"]["spec"]["limits"]
    demanded = {name.partition(".") for name in hard if re.fullmatch(r"(requests|limits)\.(cpu|memory)", name)}
    assert len(demanded) == 3
    for kind, _, resource in demanded:
        assert resource in container["defaultRequest" if kind == "requests" else "default"]


POD = """
import ctypes, os, shutil, sys

setpriv = shutil.which("setpriv")
libc = ctypes.CDLL(None, use_errno=True)

def must(result):
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

masked = sys.argv[1] == "masked"
(here, go), (mapped, ready) = os.pipe(), os.pipe()
pod = os.fork()
if not pod:  # hostUsers: false, in a process namespace of its own
    must(libc.unshare(0x10000000 | 0x00020000 | 0x20000000))
    os.write(go, b"x")
    os.read(mapped, 1)
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    container = os.fork()
    if not container:
        must(libc.mount(b"proc", b"/proc", b"proc", 0, None))
        if masked:  # what a container runtime does unless procMount is Unmasked
            must(libc.mount(b"tmpfs", b"/proc/tty", b"tmpfs", 0, None))
        alone = ["setpriv", "--reuid=1000", "--regid=100", "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
        os.execv(setpriv, [*alone, "--inh-caps=-all", *sys.argv[2:]])
    os._exit(os.waitstatus_to_exitcode(os.waitpid(container, 0)[1]))
os.read(here, 1)
for kind in ("uid_map", "gid_map"):
    with open(f"/proc/{pod}/{kind}", "w") as file:
        file.write("0 100000 65536")
os.write(ready, b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pod, 0)[1]))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="requires root, to make a user namespace as a container runtime does")
@pytest.mark.skipif(not os.access("/usr/bin/bwrap", os.X_OK), reason="requires bubblewrap in /usr/bin")
@pytest.mark.parametrize("proc", ["whole", "masked"])
def test_the_sandbox_opens_where_the_graders_pod_is_and_not_with_a_masked_proc(tmp_path, proc):
    (tmp_path / "pod.py").write_text(POD, encoding="utf-8")
    box = [
        "/usr/bin/bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "/bin/true",
    ]
    done = subprocess.run([sys.executable, tmp_path / "pod.py", proc, *box], capture_output=True, text=True, timeout=30)
    if "Operation not permitted" in done.stderr and "unshare" in done.stderr:
        pytest.skip("requires a kernel that lets root make user namespaces")
    assert (done.returncode == 0) == (proc == "whole"), done.stderr
    if proc == "masked":
        assert "proc" in done.stderr and "Operation not permitted" in done.stderr


# The files of a course


ROSTER = "username,first_name,last_name,email\nada,Ada,Lovelace,ada@example.org\nj.doe@example.org,,,\n"


@pytest.fixture
def fill(tmp_path):
    (tmp_path / "roster.csv").write_text(ROSTER, encoding="utf-8")

    def run(**changed: str) -> int:
        options = {"course": "amp", "image": "registry.example/amp", "tag": "7", "instructors": "grace", **changed}
        options.setdefault("roster", str(tmp_path / "roster.csv"))
        given = [each for name, value in options.items() for each in (f"--{name}", value)]
        return kubernetes.main(["fill", *given, str(tmp_path / "out")])

    return run


def test_the_files_are_filled_in_and_the_token_is_made_once(fill, tmp_path, capsys):
    assert fill() == 0
    out = tmp_path / "out"
    written = capsys.readouterr().out.split()
    assert sorted(written) == sorted(str(path) for path in out.iterdir())
    assert len(written) == 7
    for path in out.iterdir():
        text = path.read_text(encoding="utf-8")
        assert "$" not in text
        assert list(yaml.safe_load_all(text))
    secret = out / "secret-values.yaml"
    assert {path.stat().st_mode & 0o777 for path in (secret, out / "grader-secret.yaml")} == {0o600}
    token = yaml.safe_load(secret.read_text())["hub"]["services"]["amp"]["apiToken"]
    assert yaml.safe_load((out / "grader-secret.yaml").read_text())["stringData"] == {"JUPYTERHUB_API_TOKEN": token}
    assert len(token) == 64
    assert fill(tag="8") == 0
    assert token in secret.read_text()
    assert 'tag: "8"' in (out / "values.yaml").read_text()


def test_the_readmes_command_fills_the_files_in(tmp_path, monkeypatch, capsys):
    text = (kubernetes.FILES / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^python -m autograder\.hub\.kubernetes ((?:.*\\\n)*.*)$", text, flags=re.MULTILINE)
    (tmp_path / "roster.csv").write_text(ROSTER, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    values = {"IMAGE": "registry.example/amp", "TAG": "2026.1"}
    words = shlex.split(string.Template(command.replace("\\\n", " ")).substitute(values))
    assert kubernetes.main(words) == 0
    written = {Path(line).name for line in capsys.readouterr().out.split()}
    named = set(re.findall(r"build/hub-amp/([a-z-]+\.yaml)", text))
    assert named - written == {"login.yaml"}  # which the administrator writes
    assert written - named == set()


def test_the_readmes_command_for_the_class_names_fills_a_gradebook(tmp_path):
    """As it stands there, with a shell of this machine's in the place of one in the grader's pod."""
    from nbgrader.api import Gradebook

    text = (kubernetes.FILES / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^sed .*\\\n.*$", text, flags=re.MULTILINE)
    command = command.replace("kubectl -n amp exec -i deploy/grader-amp --", "env")
    command = command.replace("/tmp/roster.csv", str(tmp_path / "there.csv"))
    (tmp_path / "roster.csv").write_text(ROSTER, encoding="utf-8")
    (tmp_path / "nbgrader_config.py").write_text("get_config().CourseDirectory.course_id = 'amp'\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(command, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path}, check=True, capture_output=True)
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}", "amp") as book:
        found = {student.id for student in book.students}
    assert found == {row["username"] for row in csv.DictReader(ROSTER.splitlines())}


def test_the_commands_that_the_readmes_name_are_there(root):
    from typer.main import get_command

    from autograder.cli import app

    for name in ("kubernetes", "slurm"):
        text = (root / "hub" / name / "README.md").read_text(encoding="utf-8")
        named = set(re.findall(r"(?:`|&& |-- |^)autograder ([a-z]+)", text, flags=re.MULTILINE))
        assert named <= set(get_command(app).commands)
        assert "doctor" in named


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"course": "AMP_1"}, "cannot be the id of a course on Kubernetes"),
        ({"course": "a" * 41}, "1 to 40"),
        ({"instructors": ","}, "has no instructor"),
        ({"instructors": "ada"}, "cannot be a student of the same course"),
        ({"roster": "missing.csv"}, "cannot be read"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(fill, tmp_path, capsys, changed, said):
    assert fill(**changed) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_roster_with_names_that_cannot_be_is_refused(fill, tmp_path, capsys):
    (tmp_path / "bad.csv").write_text("username\na/b\nada\nada\n", encoding="utf-8")
    assert fill(roster=str(tmp_path / "bad.csv")) == 1
    said = capsys.readouterr().err
    assert "'a/b'" in said and "2 times" in said
    assert not (tmp_path / "out").exists()


def test_half_a_token_is_refused(fill, tmp_path, capsys):
    assert fill() == 0
    (tmp_path / "out" / "grader-secret.yaml").unlink()
    assert fill() == 1
    assert "they hold the same token" in capsys.readouterr().err


# The images


def context(dockerfile: Path, root: Path) -> list[str]:
    """The files that `docker build` sees: what the .dockerignore beside the Dockerfile leaves of the checkout."""
    from fnmatch import fnmatchcase

    rules = [line for line in Path(f"{dockerfile}.dockerignore").read_text().splitlines() if line and line[0] != "#"]
    tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True)
    assert tracked.returncode == 0, tracked.stderr
    # What git does not list is what the ignore file has to keep out by itself.
    hidden = ["build/x", ".venv/bin/python", "ampkit/__pycache__/x.pyc", "exercises/__pycache__/x.pyc", ".git/config"]
    seen = []
    for path in [*tracked.stdout.splitlines(), *hidden]:
        parts = Path(path).parts
        prefixes = ["/".join(parts[: length + 1]) for length in range(len(parts))]
        kept = True
        for rule in rules:
            pattern = rule.lstrip("!")
            within = pattern.startswith("**/") and any(fnmatchcase(part, pattern[3:]) for part in parts)
            if within or any(
                fnmatchcase(prefix, pattern) for prefix in prefixes if "/" not in prefix or "/" in pattern
            ):
                kept = rule.startswith("!")
        if kept:
            seen.append(path)
    return seen


def copied(dockerfile: Path, root: Path) -> set[str]:
    """The files of the checkout that the COPY lines bring into any stage of the image."""
    text = dockerfile.read_text(encoding="utf-8").replace("\\\n", " ")
    sources: list[str] = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["ADD"]:
            pytest.fail(f"{dockerfile.name} has an ADD line, which this test does not follow")
        if words[:1] == ["COPY"] and not words[1].startswith("--from="):
            sources += [word.rstrip("/") for word in words[1:-1]]
    assert sources and not any(set("*?[") & set(source) or source in (".", "") for source in sources)
    found = {
        path
        for path in context(dockerfile, root)
        for source in sources
        if path == source or path.startswith(f"{source}/")
    }
    for source in sources:
        assert any(path == source or path.startswith(f"{source}/") for path in found), f"{source} is not in the context"
    return found


def test_a_students_image_has_the_library_and_the_lessons_and_nothing_of_the_solutions(root):
    files = copied(kubernetes.FILES / "student.Dockerfile", root)
    tops = {path.partition("/")[0] for path in files if "/" in path}
    assert tops == {"ampkit", "autograder", "lessons", "hub"}
    assert {path for path in files if path.startswith("hub/")} == {"hub/kubernetes/image_environment.py"}
    assert {"ampkit/cli.py", "autograder/student.py", "autograder/hub/kubernetes.py"} <= files
    assert not [path for path in files if "mistake" in path or "solution" in path or "__pycache__" in path]

    def digest(path: Path) -> str:
        return hashlib.sha256(path.read_bytes()).hexdigest()

    secret = {digest(path) for path in (root / "exercises").rglob("*") if path.is_file() and path.stat().st_size}
    assert len(secret) > 100
    assert not secret & {digest(root / path) for path in files}


def test_the_exercises_do_not_even_enter_the_build_of_a_students_image(root):
    seen = context(kubernetes.FILES / "student.Dockerfile", root)
    assert {path.partition("/")[0] for path in seen if "/" in path} == {"ampkit", "autograder", "lessons", "hub"}
    assert len(seen) > 50


def test_the_graders_image_has_the_exercises_and_no_tests(root):
    files = copied(kubernetes.FILES / "grader.Dockerfile", root)
    tops = {path.partition("/")[0] for path in files if "/" in path}
    assert tops == {"ampkit", "autograder", "lessons", "exercises", "hub"}


def test_images_hide_gpus_and_run_as_the_user_whom_nbgrader_takes_for_the_hubs():
    for name, user in (("student", "jovyan"), ("grader", "grader")):
        text = (kubernetes.FILES / f"{name}.Dockerfile").read_text(encoding="utf-8")
        final = text[text.rindex("\nFROM ") :]
        assert "NVIDIA_VISIBLE_DEVICES=void" in final
        assert "\nUSER 1000:100\n" in final
        assert re.search(rf"useradd --uid 1000 --gid 100 .*--create-home {user}\b", final)
        assert "--owner=1000 --group=100 /srv/exchange" in final


def test_the_images_environment_is_the_courses_less_what_only_tests_need(root):
    script = kubernetes.FILES / "image_environment.py"
    done = subprocess.run([sys.executable, "-I", script, root], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made, ours = yaml.safe_load(done.stdout), yaml.safe_load((root / "environment.yml").read_text(encoding="utf-8"))
    listed = {each for each in ours["dependencies"] if isinstance(each, str)}
    assert set(made["dependencies"]) - listed == {"jupyterhub-singleuser>=5.2,<6"}
    dropped = {re.match(r"[\w-]+", each)[0] for each in listed - set(made["dependencies"])}
    assert dropped == {"pytest", "pytest-xdist", "hypothesis", "ruff", "mypy"} | (
        dropped - {"dask", "psycopg", "pytorch"}
    )
    assert "pytest" in dropped and "nbgrader>=0.9.6,<0.10" in made["dependencies"]
    assert made["channels"] == ["conda-forge"]


# The grader beside a real hub


HUB = '''
import json
from jupyterhub.proxy import Proxy

class NoProxy(Proxy):
    """The hub wants a proxy; its API and the grader are asked directly here."""

    should_start = False

    async def add_route(self, routespec, target, data): pass
    async def delete_route(self, routespec): pass
    async def get_all_routes(self): return {}
    async def get_route(self, routespec): return None

values, people, tokens, port, public_port, url = json.loads(%r)
c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.bind_url = f"http://127.0.0.1:{public_port}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{port}"
c.JupyterHub.db_url = "sqlite://"
c.JupyterHub.authenticator_class = "null"
c.JupyterHub.load_groups = people["hub"]["config"]["JupyterHub"]["load_groups"]
c.Authenticator.allowed_users = set(people["hub"]["config"]["Authenticator"]["allowed_users"])
c.JupyterHub.load_roles = [
    {"name": name, **role} for name, role in values["hub"]["loadRoles"].items()
] + [{"name": "tests", "services": ["tests"], "scopes": ["admin:users", "tokens"]}]
c.JupyterHub.services = [
    {"name": name, **service, "api_token": tokens[name], "url": url} for name, service in values["hub"]["services"].items()
] + [{"name": "tests", "api_token": tokens["tests"]}]
'''


def ask(url: str, token: str | None = None, data: dict | None = None) -> tuple[int, str]:
    request = urllib.request.Request(url, data=json.dumps(data).encode() if data is not None else None)
    if token:
        request.add_header("Authorization", f"token {token}")
    try:
        with urllib.request.build_opener(Stay).open(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers.get("Location") or error.read().decode()


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments):
        return None


def wait_for(url: str, process: subprocess.Popen, log: Path) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            ask(url)
            return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"{url} does not answer:\n{log.read_text()}")


@pytest.fixture(scope="module")
def beside_a_hub(values, manifests, grader, tmp_path_factory):
    """A hub with the values' roles, groups and service, and beside it the grader with the Deployment's environment.

    The address of the hub's API, the grader's, a function that makes a person's token, the grader's token, the logs' folder.
    """
    folder = tmp_path_factory.mktemp("hub")
    hub_port, public_port, grader_port = ports.free(3)
    tokens = {"amp": "a" * 64, "tests": "t" * 64}
    people = kubernetes.people("amp", ["ada"], ["grace"])
    hub_url, grader_url = f"http://127.0.0.1:{hub_port}/hub/api", f"http://127.0.0.1:{grader_port}"
    text = HUB % json.dumps([values, people, tokens, hub_port, public_port, grader_url])
    (folder / "jupyterhub_config.py").write_text(text, encoding="utf-8")
    (folder / "jupyter").mkdir()
    (folder / "amp").mkdir()
    for name, content in manifests["ConfigMap", "grader-amp"]["data"].items():
        (folder / "jupyter" / name).write_text(
            content.replace("/srv/course/amp", str(folder / "amp")), encoding="utf-8"
        )
    env = {each["name"]: each.get("value", tokens["amp"]) for each in server({"spec": grader})["env"]}
    env |= {"JUPYTERHUB_API_URL": hub_url, "JUPYTER_CONFIG_PATH": str(folder / "jupyter"), "HOME": str(folder)}
    env["JUPYTERHUB_SERVICE_URL"] = env["JUPYTERHUB_SERVICE_URL"].replace("0.0.0.0:8888", f"127.0.0.1:{grader_port}")
    # An instructor's course has a gradebook by then; formgrader makes it, and calls alembic for it.
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    root = ["--allow-root"] if os.getuid() == 0 else []
    commands = {
        "hub": ([sys.executable, "-m", "jupyterhub", "-f", "jupyterhub_config.py"], {**os.environ}, f"{hub_url}/"),
        "grader": (
            [sys.executable, "-m", "jupyterhub.singleuser", *root],
            env,
            f"{grader_url}/services/amp/api",
        ),
    }
    with contextlib.ExitStack() as stack:
        for name, (command, environ, url) in commands.items():
            log = folder / f"{name}.log"
            file = stack.enter_context(log.open("w"))
            process = subprocess.Popen(command, cwd=folder, env=environ, stdout=file, stderr=file)
            stack.callback(process.wait, 30)
            stack.callback(process.terminate)
            wait_for(url, process, log)

        def token(user: str) -> str:
            status, said = ask(f"{hub_url}/users/{user}/tokens", tokens["tests"], {})
            assert status == 201, said
            return json.loads(said)["token"]

        yield hub_url, f"{grader_url}/services/amp", token, tokens["amp"], folder


@pytest.mark.slow
def test_the_manifests_environment_makes_a_grader_that_instructors_can_open(beside_a_hub):
    _, url, token, _, folder = beside_a_hub
    grace = token("grace")
    assert ask(f"{url}/", grace) == (302, "/services/amp/formgrader?")
    status, said = ask(f"{url}/formgrader/manage_assignments", grace)
    assert status == 200, (folder / "grader.log").read_text()
    assert "Manage Assignments" in said
    assert ask(f"{url}/formgrader/api/students", grace) == (200, "[]")
    assert (folder / "amp" / "gradebook.db").is_file()
    assert ask(f"{url}/assignment_list", grace)[0] == 404  # as the ConfigMap has it


@pytest.mark.slow
def test_students_and_strangers_do_not_get_into_the_grader(beside_a_hub):
    _, url, token, _, _ = beside_a_hub
    assert ask(f"{url}/formgrader/manage_assignments", token("ada"))[0] == 403
    status, where = ask(f"{url}/formgrader/manage_assignments")
    assert status == 302 and "/hub/api/oauth2/authorize?client_id=service-amp" in where
    assert ask(f"{url}/formgrader/manage_assignments", "nonsense")[0] == 302


@pytest.mark.slow
def test_the_graders_token_sees_the_course_and_no_more(beside_a_hub):
    hub, _, _, token, _ = beside_a_hub
    assert json.loads(ask(f"{hub}/groups", token)[1])[0]["name"] == "nbgrader-amp"
    assert "formgrade-amp" in ask(f"{hub}/users/grader-amp", token)[1]
    for path in ("users/ada", "users/grace", "services", "proxy", "groups/formgrade-amp", "users/grader-amp/tokens"):
        assert ask(f"{hub}/{path}", token)[0] in (403, 404), path
    assert ask(f"{hub}/users", token)[0] == 403
