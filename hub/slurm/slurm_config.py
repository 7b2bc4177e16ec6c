# Students' servers as Slurm jobs. Load it from jupyterhub_config.py: load_subconfig("…/hub/slurm/slurm_config.py")
# README.md beside it has the steps. Lines marked SITE are to be yours.

c = get_config()  # noqa: F821

COURSE = "amp"  # SITE
SHARED = "/shared/amp"  # SITE: on all nodes; holds environment/, jupyter/ and exchange/

c.JupyterHub.spawner_class = "autograder.hub.slurm.CourseSlurmSpawner"
# Jobs outlive a restart of the hub; their numbers are in its database.
c.JupyterHub.cleanup_servers = False
# The nodes have to reach the hub, and the proxy the nodes: plain HTTP inside the cluster (README.md, "The network").
c.JupyterHub.hub_bind_url = "http://0.0.0.0:8081"
c.JupyterHub.hub_connect_url = "http://hub.cluster.example:8081"  # SITE: the name by which nodes know this machine

c.CourseSlurmSpawner.profiles = {
    # The first is the default: who only reads a lesson takes no GPU away from anybody.
    "cpu": {
        "title": "CPU",
        "description": "2 cores, 4 GB, 4 hours. All lessons work; times and GPU memory come from stored runs.",
        "partition": "teaching",  # SITE
        "nprocs": "2",
        "memory": "4G",
        "runtime": "04:00:00",
    },
    "class": {
        # scontrol create reservation ReservationName=amp-class … TRES=gres/gpu=30 Flags=WEEKLY: GPUs that wait for the class.
        # Outside its hours such a job stays in the queue, and the hub gives up after start_timeout.
        "title": "GPU, in class",
        "description": "A whole GPU that is reserved for class hours.",
        "partition": "gpu",  # SITE
        "reservation": "amp-class",  # SITE
        "gres": "gpu:1",
        "nprocs": "4",
        "memory": "16G",
        "runtime": "02:00:00",  # no longer than the class: a job that would overrun the reservation never starts
    },
    "gpu": {
        "title": "GPU",
        "description": "A whole GPU for 2 hours, when one is free. What you time is what the GPU does.",
        "partition": "gpu",
        "gres": "gpu:1",
        "nprocs": "4",
        "memory": "16G",
        "runtime": "02:00:00",
    },
    "mig": {
        # gres.conf names slices as nvidia-smi does (AutoDetect=nvml). Each has memory and compute of its own.
        "title": "A slice of a GPU (MIG)",
        "description": "A seventh of a GPU: times are steady, and about a seventh.",
        "partition": "gpu",
        "gres": "gpu:1g.10gb:1",  # SITE
        "nprocs": "4",
        "memory": "16G",
        "runtime": "02:00:00",
    },
    # Not offered: gres/shard and MPS. Neighbours share memory and time of one GPU; times in the lessons then mean nothing.
}

c.CourseSlurmSpawner.start_timeout = (
    900  # a job may wait in the queue for so long before the student is told to try later
)
c.CourseSlurmSpawner.http_timeout = 120
c.CourseSlurmSpawner.startup_poll_interval = (
    5.0  # squeue by each waiting student twice a second is a burden for slurmctld
)
c.CourseSlurmSpawner.poll_interval = 60
# sudoers lets the hub's account run exactly these three, as students: README.md.
c.CourseSlurmSpawner.exec_prefix = "sudo -E -u {username}"
c.CourseSlurmSpawner.batch_submit_cmd = "/usr/bin/sbatch --parsable"
c.CourseSlurmSpawner.batch_query_cmd = "/usr/bin/squeue -h -j {job_id} -o '%T %B'"
c.CourseSlurmSpawner.batch_cancel_cmd = "/usr/bin/scancel {job_id}"
# sbatch sets no PATH of ours: commands by their full names.
c.CourseSlurmSpawner.batchspawner_singleuser_cmd = f"{SHARED}/environment/bin/batchspawner-singleuser"
c.CourseSlurmSpawner.cmd = [f"{SHARED}/environment/bin/jupyterhub-singleuser"]
c.CourseSlurmSpawner.default_url = "/lab"
c.CourseSlurmSpawner.req_prologue = (
    f"{SHARED}/environment/bin/python -P -m autograder.hub.slurm link {SHARED}/exchange {COURSE}"
)
c.CourseSlurmSpawner.environment = {
    "JUPYTER_CONFIG_PATH": f"{SHARED}/jupyter",  # culling, and no formgrader for students: README.md, step 4
    "OMP_NUM_THREADS": "2",
}
