# syntax=docker/dockerfile:1
# The gateway with its console: `docker build -t toolgate .`, or `docker compose up`.

FROM node:26-trixie-slim AS console
WORKDIR /src
# The manifests of all workspaces: npm compares them with the lock file.
COPY --parents package.json package-lock.json packages/*/package.json examples/*/package.json tests/*/package.json ./
# What the console is built from, without the servers and frameworks of the tests. Not `npm ci`: that wants the optional
# binaries of every platform in the lock file.
# hadolint ignore=DL3016
RUN npm install --no-save --no-audit --no-fund --ignore-scripts --include-workspace-root \
      --workspace @toolgate/plugin --workspace @toolgate/client --workspace @toolgate/react --workspace @toolgate/console
COPY tsconfig.base.json ./
COPY scripts/compress scripts/
COPY packages packages
RUN npm run build --workspace @toolgate/plugin --workspace @toolgate/client --workspace @toolgate/react \
    && npm run build --workspace @toolgate/console \
    && node scripts/compress packages/console/dist

FROM rust:1.95-trixie AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY crates crates
COPY examples/rust-worker examples/rust-worker
COPY --from=console /src/packages/console/dist packages/console/dist
# An empty directory, because the last stage has no program that could make one.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/target \
    CARGO_TARGET_DIR=/target cargo build --locked --release -p toolgate \
    && install -D --strip /target/release/toolgate /out/toolgate \
    && mkdir /out/data

# Nothing but the C library, certificates and time zones: no shell, no package manager. Its user `nonroot` is 65532.
FROM gcr.io/distroless/cc-debian13:nonroot
COPY --from=build /out/toolgate /usr/local/bin/toolgate
# A new volume takes its owner from here.
COPY --from=build --chown=65532:65532 /out/data /data
# SQLite's temporary files go where its database is: the root file system may be read-only.
ENV TOOLGATE_LISTEN=0.0.0.0:8787 TOOLGATE_DATA=/data SQLITE_TMPDIR=/data
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 8787
HEALTHCHECK --interval=10s --timeout=6s --start-period=10s --retries=3 CMD ["/usr/local/bin/toolgate", "health"]
ENTRYPOINT ["/usr/local/bin/toolgate"]
CMD ["serve"]
