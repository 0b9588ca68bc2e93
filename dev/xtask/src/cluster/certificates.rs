//! The cluster's certificates, made with the system's `openssl`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;

use super::command::{self, run};

/// A development cluster lives for days. [`Authority::expires_soon`] has it made anew before this runs out.
const DAYS: &str = "30";

/// Keeps the system's openssl.cnf out: it would add extensions that make every certificate an authority.
const CONFIGURATION: &str = "[req]\ndistinguished_name = name\n[name]\n";

/// A certificate authority and the folder of what it signed.
pub(super) struct Authority {
    folder: PathBuf,
}

impl Authority {
    /// The authority whose files are in `folder`, which need not exist yet.
    pub(super) fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Makes the authority, and the key pair with which the API server signs the tokens of service accounts.
    pub(super) fn create(&self) -> Result<()> {
        fs::create_dir_all(&self.folder)?;
        fs::write(self.path("openssl.cnf"), CONFIGURATION)?;
        let subject = "/CN=codeworkspace-development";
        let extension = "basicConstraints=critical,CA:TRUE";
        self.request("ca", subject)
            .args(["-addext", extension])
            .arg("-out")
            .arg(self.path("ca.crt"))
            .finish()?;
        let key = self.path("service-accounts.key");
        run(
            "openssl",
            [
                "genpkey".as_ref(),
                "-algorithm".as_ref(),
                "RSA".as_ref(),
                "-out".as_ref(),
                key.as_os_str(),
            ],
        )?;
        let public = self.path("service-accounts.pub");
        run(
            "openssl",
            [
                "pkey".as_ref(),
                "-in".as_ref(),
                key.as_os_str(),
                "-pubout".as_ref(),
                "-out".as_ref(),
                public.as_os_str(),
            ],
        )?;
        Ok(())
    }

    /// Makes the certificate `NAME.crt` and its key `NAME.key`. `alternatives` are the names and addresses of a server.
    pub(super) fn issue(&self, name: &str, subject: &str, alternatives: &[String]) -> Result<()> {
        let mut request = self.request(name, subject);
        request
            .arg("-CA")
            .arg(self.path("ca.crt"))
            .arg("-CAkey")
            .arg(self.path("ca.key"));
        request.args(["-addext", "extendedKeyUsage=clientAuth,serverAuth"]);
        if !alternatives.is_empty() {
            request
                .arg("-addext")
                .arg(format!("subjectAltName={}", alternatives.join(",")));
        }
        request
            .arg("-out")
            .arg(self.path(&format!("{name}.crt")))
            .finish()
    }

    fn request(&self, name: &str, subject: &str) -> Request {
        let mut command = command::command("openssl");
        command.args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ]);
        command.args(["-days", DAYS, "-subj", subject]);
        command.arg("-config").arg(self.path("openssl.cnf"));
        command.arg("-keyout").arg(self.path(&format!("{name}.key")));
        Request(command)
    }

    /// Whether the certificates are within a day of their end, or are not there. All were made together.
    pub(super) fn expires_soon(&self) -> bool {
        let check = [
            "x509".as_ref(),
            "-noout".as_ref(),
            "-checkend".as_ref(),
            "86400".as_ref(),
            "-in".as_ref(),
        ];
        let certificate = self.path("ca.crt");
        run("openssl", check.into_iter().chain([certificate.as_os_str()])).is_err()
    }

    /// A file of the authority: `ca.crt`, `NAME.crt`, `NAME.key`, `service-accounts.key` or `service-accounts.pub`.
    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    /// Writes a kubeconfig for the user whose certificate is `name`.
    pub(super) fn write_kubeconfig(&self, name: &str, server: &str, path: &Path) -> Result<()> {
        let text = super::template::render(
            include_str!("../../../cluster/node/kubeconfig.yaml"),
            &[
                ("server", server),
                ("pki", &self.folder.display().to_string()),
                ("user", name),
            ],
        )?;
        Ok(fs::write(path, text)?)
    }
}

/// An `openssl req` that is being put together.
struct Request(std::process::Command);

impl Request {
    fn arg(&mut self, argument: impl AsRef<std::ffi::OsStr>) -> &mut Self {
        self.0.arg(argument);
        self
    }

    fn args<A: AsRef<std::ffi::OsStr>>(&mut self, arguments: impl IntoIterator<Item = A>) -> &mut Self {
        self.0.args(arguments);
        self
    }

    fn finish(&mut self) -> Result<()> {
        command::output(&mut self.0).map(drop)
    }
}
