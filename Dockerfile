# Two steps: build with the Rust toolchain, run on a small base as an unprivileged user.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin sluice

FROM debian:bookworm-slim
RUN useradd --system --uid 10001 --home-dir /data sluice && install -d -o sluice -g sluice /data
COPY --from=build /src/target/release/sluice /usr/local/bin/sluice
USER sluice
VOLUME /data
ENV SLUICE_DATA_DIR=/data SLUICE_LISTEN=0.0.0.0:8080
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s CMD ["sluice", "healthcheck"]
ENTRYPOINT ["sluice"]
CMD ["serve"]
