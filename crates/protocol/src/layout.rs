//! Fixed places and identities inside a pod. The operator mounts volumes there and the runner expects them there.

/// Directory (an `emptyDir`) into which `runner prepare` installs the runner; read-only in the body's container, since the body
/// has the same user id and could otherwise replace the program that judges it.
pub const TOOLS_DIRECTORY: &str = "/codeworkspace";

/// The installed runner: first element of the body container's command.
pub const RUNNER: &str = "/codeworkspace/runner";

/// File name of the runner below the directory it is installed into.
pub const RUNNER_FILE: &str = "runner";

/// Directory at which the bundle's `ConfigMap` is mounted, in the init container only.
pub const BUNDLE_DIRECTORY: &str = "/codeworkspace-bundle";

/// The compressed bundle below [`BUNDLE_DIRECTORY`].
pub const BUNDLE: &str = "/codeworkspace-bundle/bundle.tar.gz";

/// Key of the compressed bundle in its `ConfigMap`.
pub const BUNDLE_KEY: &str = "bundle.tar.gz";

/// Directory at which `runner read` finds the volume whose files it reads.
pub const ROOT_DIRECTORY: &str = "/codeworkspace-root";

/// Directory (an `emptyDir` of memory) that holds a session pod's certificate and key, in both of its containers.
pub const IDENTITY_DIRECTORY: &str = "/codeworkspace-identity";

/// File name of the pod's certificate below [`IDENTITY_DIRECTORY`], PEM.
pub const CERTIFICATE_FILE: &str = "certificate.pem";

/// File name of the pod's private key below [`IDENTITY_DIRECTORY`], PEM (PKCS #8). `runner serve` removes it once it is loaded.
pub const KEY_FILE: &str = "key.pem";

/// Directory at which the pod's projected token is mounted, in the init container only.
pub const TOKEN_DIRECTORY: &str = "/var/run/secrets/codeworkspace.dev";

/// File name of the token below [`TOKEN_DIRECTORY`].
pub const TOKEN_FILE: &str = "token";

/// Where the bundle is unpacked and the body starts, unless the workspace's `volume.mountPath` says otherwise.
pub const DEFAULT_MOUNT: &str = "/workspace";

/// The body's home directory, a writable volume: image users' homes are not writable under a read-only root.
pub const HOME: &str = "/home/codeworkspace";

/// The body's scratch directory, a writable volume.
pub const TEMPORARY_DIRECTORY: &str = "/tmp";

/// The container's termination log: kubelet mounts a file there and reports what it holds once the container has ended.
pub const TERMINATION_LOG: &str = "/dev/termination-log";

/// Numeric user and group id of both containers, and the pod's `fsGroup`.
pub const USER_ID: u32 = 65_532;
