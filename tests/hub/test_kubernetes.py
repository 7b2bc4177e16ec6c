"""hub/kubernetes: the pods that its values make, who sees what of the exchange, what is in an image, the grader's manifests.

There is no cluster here. The values are turned into KubeSpawner's configuration as Zero to JupyterHub 4 does it (its
files/hub/jupyterhub_config.py), and KubeSpawner itself makes the pods.
"""

import asyncio
import copy
import json
import os
import re
import shutil
import string
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from autograder.errors import CourseError
from autograder.hub import kubernetes

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


def test_nbgraders_own_fetch_and_submit_work_on_the_mounts(values, tmp_path):
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
    home.joinpath("nbgrader_config.py").write_text(config, encoding="utf-8")
    env = {**os.environ, "JUPYTERHUB_USER": student, "JUPYTER_CONFIG_PATH": "", "HOME": str(home)}
    # The image's user is jovyan, and for that name alone nbgrader takes the hub's variable for who somebody is. Whose courses
    # somebody takes is asked of the hub, and there is none.
    line = (
        "import sys, nbgrader.utils; nbgrader.utils.get_osusername = lambda: 'jovyan'; "
        "from nbgrader.apps.nbgraderapp import main; sys.exit(main())"
    )
    for command in ("fetch_assignment", "submit"):
        arguments = [command, "01_range", "--Authenticator.plugin_class=nbgrader.auth.base.NoAuthPlugin"]
        done = subprocess.run(
            [sys.executable, "-c", line, *arguments], cwd=home, env=env, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
    (submission,) = (disk / "amp" / "inbound" / "j-2edoe-40example-2eorg").iterdir()
    assert submission.name.startswith(f"{student}+01_range+")
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
    assert set(on) == set(extensions)
    names = {name.rpartition(".")[2] for name, enabled in on.items() if enabled}
    assert names == {"assignment_list", "validate_assignment"}
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
