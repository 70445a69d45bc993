/**
 * A certificate for `localhost` that signs itself, for servers of tests. Nobody trusts it, and it protects nothing.
 *
 *   openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 -subj /CN=localhost
 */
export const certificate = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgMMHygqTb5AoGV1Iw
wnVY95Fz/kMAkoZsQmhZoKPv2rShRANCAAQ3pc+DTiBO5G8A5YFeJxkJVVpsJsKZ
KnqnObQPR9sfxQCOs3Fn/9pdZlJEAbcygsMusEtf8CsqKccphwytDLEs
-----END PRIVATE KEY-----`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBfjCCASWgAwIBAgIULxkcFT5BTtCs8+Qc7kjdPJg88WswCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyNzE5NTIxOFoYDzIxMjYxMTAz
MTk1MjE4WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQ3pc+DTiBO5G8A5YFeJxkJVVpsJsKZKnqnObQPR9sfxQCOs3Fn/9pd
ZlJEAbcygsMusEtf8CsqKccphwytDLEso1MwUTAdBgNVHQ4EFgQUL/nU+iP94SLb
hFiEnoLqk634Du4wHwYDVR0jBBgwFoAUL/nU+iP94SLbhFiEnoLqk634Du4wDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiARKXgt0/h2ucb47Xf4KDoX
nHrmYTNYsCQlnYWberewqQIgYqdItiAbZM7uEhJA62ikMtZEEsYKIGZBe6Tdp4SM
CeM=
-----END CERTIFICATE-----`,
};
