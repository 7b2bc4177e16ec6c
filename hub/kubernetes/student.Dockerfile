# syntax=docker/dockerfile:1
# A student's server: the library, the checks' runner, the lessons. Nothing of exercises/ and tests/: they do not even enter the
# build, student.Dockerfile.dockerignore keeps them out. From the checkout's root:
#
#   docker build -f hub/kubernetes/student.Dockerfile -t IMAGE-student:TAG .
#   docker build -f hub/kubernetes/student.Dockerfile -t IMAGE-student:TAG-cuda --build-arg CUDA=12.9 .
ARG MINIFORGE=condaforge/miniforge3:latest
FROM ${MINIFORGE} AS build
# The version of CUDA to build for; the build machine needs no GPU. Without it conda takes PyTorch for CPUs. A driver of at
# least 525 runs CUDA 12, one of 580 CUDA 13: `autograder doctor` in a pod says whether they fit.
ARG CUDA=""
ENV CONDA_OVERRIDE_CUDA=${CUDA}
COPY environment.yml pyproject.toml README.md LICENSE /src/
COPY hub/kubernetes/image_environment.py /src/hub/kubernetes/
RUN python /src/hub/kubernetes/image_environment.py /src > /src/image.yml \
 && mamba env create --yes --prefix /opt/environment --file /src/image.yml \
 && mamba clean --all --yes
COPY ampkit /src/ampkit
COPY autograder /src/autograder
RUN /opt/environment/bin/python -m pip install --no-cache-dir --no-deps /src

FROM debian:trixie-slim
# tini is process 1: it buries the DataLoader workers that a dead kernel leaves behind.
RUN apt-get update && apt-get install --yes --no-install-recommends tini ca-certificates && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 1000 --gid 100 --create-home jovyan \
 # nbgrader insists on an exchange that it may write to, although here it only writes below its mounts.
 && install --directory --owner=1000 --group=100 /srv/exchange /srv/jupyter
COPY --from=build /opt/environment /opt/environment
COPY lessons /opt/course/lessons
# `void`: where NVIDIA's runtime is the node's default, `all` (as CUDA's and Jupyter's own images say) would show every GPU to a
# pod that asked for none. The device plugin overrides it in pods that asked.
ENV PATH=/opt/environment/bin:$PATH \
    LANG=C.UTF-8 \
    NVIDIA_VISIBLE_DEVICES=void \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 1000:100
WORKDIR /home/jovyan
ENTRYPOINT ["tini", "-g", "--"]
CMD ["jupyterhub-singleuser"]
