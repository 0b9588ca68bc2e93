# The operator's image. It also carries the static runner, which each pod's init container copies into place.
#
#   docker build --tag codeworkspace.dev/operator:dev .

FROM rust:1.95-trixie AS workspace
WORKDIR /build
COPY Cargo.toml Cargo.lock ./
COPY dev/xtask/Cargo.toml dev/xtask/
COPY dev/github-server/Cargo.toml dev/github-server/
# Cargo wants a target in every member of the workspace. These members are not compiled here.
RUN mkdir --parents src dev/xtask/src dev/github-server/src \
 && touch src/main.rs src/lib.rs dev/xtask/src/main.rs dev/github-server/src/main.rs
COPY crates crates

# Static, because it runs in images that are not ours, and may find no C library there. Naming the target keeps the
# flag away from build scripts. The target folder outlives this build, and copied files keep the time of their
# checkout: touching them keeps Cargo from taking what another checkout left there for current.
FROM workspace AS runner
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/usr/local/cargo/git \
    --mount=type=cache,id=codeworkspace-target,target=/build/target \
    host="$(rustc --print host-tuple)" \
 && find crates -name '*.rs' -exec touch {} + \
 && RUSTFLAGS="-C target-feature=+crt-static" \
    cargo build --locked --profile runner --package codeworkspace-runner --target "$host" \
 && install -D "target/$host/runner/runner" /out/runner

FROM workspace AS operator
ARG PROFILE=release
COPY src src
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/usr/local/cargo/git \
    --mount=type=cache,id=codeworkspace-target,target=/build/target \
    find src crates -name '*.rs' -exec touch {} + \
 && cargo build --locked --profile "$PROFILE" --package codeworkspace-operator \
 && install -D "target/$PROFILE/codeworkspace-operator" /out/codeworkspace-operator

FROM debian:trixie-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* \
 && find / -xdev -type f -perm /6000 -exec chmod a-s {} +
COPY --from=runner /out/runner /usr/local/bin/
COPY --from=operator /out/codeworkspace-operator /usr/local/bin/
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/codeworkspace-operator"]
