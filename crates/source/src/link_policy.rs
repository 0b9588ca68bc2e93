pub use codeworkspace_bundle::LinkPolicy;
