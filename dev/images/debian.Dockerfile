# Stands in for debian:trixie-slim where no image registry is reached. The context holds what mmdebstrap made.
FROM scratch
ADD rootfs.tar /
CMD ["bash"]
