# For build stages that download over TLS: trusts the certificate authorities of this machine, which may stand
# behind an intercepting proxy. Only files that a later stage copies leave such a stage, so no image trusts them.
FROM debian:trixie-slim
COPY authorities.crt /usr/local/share/build-authorities.crt
ENV CARGO_HTTP_CAINFO=/usr/local/share/build-authorities.crt \
    NODE_EXTRA_CA_CERTS=/usr/local/share/build-authorities.crt \
    npm_config_cafile=/usr/local/share/build-authorities.crt
