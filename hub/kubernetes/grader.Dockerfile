# syntax=docker/dockerfile:1
# The grader: the checkout with exercises/, solutions and known mistakes. Keep its registry private. From the checkout's root:
#
#   docker build -f hub/kubernetes/grader.Dockerfile -t IMAGE-grader:TAG .
ARG MINIFORGE=condaforge/miniforge3:latest
FROM ${MINIFORGE} AS build
# Answers are graded on CPUs, in FP16 as well: PyTorch without CUDA.
ENV CONDA_OVERRIDE_CUDA=""
COPY environment.yml pyproject.toml /src/
COPY hub/kubernetes/image_environment.py /src/hub/kubernetes/
RUN python /src/hub/kubernetes/image_environment.py /src > /src/image.yml \
 && mamba env create --yes --prefix /opt/environment --file /src/image.yml \
 && mamba clean --all --yes
COPY pyproject.toml README.md LICENSE /opt/course/
COPY ampkit /opt/course/ampkit
COPY autograder /opt/course/autograder
COPY exercises /opt/course/exercises
COPY lessons /opt/course/lessons
# An editable installation, where `autograder init` finds the exercises beside the package.
RUN /opt/environment/bin/python -m pip install --no-cache-dir --no-deps --editable /opt/course

FROM debian:trixie-slim
# bubblewrap is the sandbox. It is not setuid here and needs not be: the pod may make user namespaces.
RUN apt-get update && apt-get install --yes --no-install-recommends tini ca-certificates bubblewrap \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 1000 --gid 100 --home-dir /home/grader --create-home grader \
 && install --directory --owner=1000 --group=100 /srv/exchange /srv/course /srv/jupyter
COPY --from=build /opt/environment /opt/environment
COPY --from=build /opt/course /opt/course
ENV PATH=/opt/environment/bin:$PATH \
    LANG=C.UTF-8 \
    NVIDIA_VISIBLE_DEVICES=void
USER 1000:100
WORKDIR /srv/course
ENTRYPOINT ["tini", "-g", "--"]
CMD ["jupyterhub-singleuser"]
