# Stands in for the official rust image: this machine's own toolchain, a C compiler, and the same CARGO_HOME.
FROM trusting
RUN apt-get update \
 && apt-get install --yes --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
COPY --from=toolchain bin/cargo bin/rustc /usr/local/cargo/bin/
COPY --from=toolchain lib /usr/local/cargo/lib
ENV CARGO_HOME=/usr/local/cargo \
    PATH=/usr/local/cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
