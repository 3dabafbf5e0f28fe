"""Keys of Kafka's Java clients that mean nothing here: metrics reporters, Java classes, Kerberos, share groups.

They are accepted, with a warning in the log, because a client does the same without them. A few would change whom a
client trusts or what it promises: these are refused, with what to use in their place. Names of other Python clients
are in `config_others`.
"""

HARMLESS = frozenset(
    {
        "client.dns.lookup",
        "config.providers",
        "enable.metrics.push",
        "internal.throw.on.fetch.stable.offset.unsupported",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.service.name",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.jitter",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.jwt.validator.class",
        "sasl.oauthbearer.scope.claim.name",
        "sasl.oauthbearer.sub.claim.name",
        "security.providers",
        "share.acknowledgement.mode",
        "share.acquire.mode",
        "ssl.keymanager.algorithm",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    }
)

_TOKEN_CALLBACK = "hand a function to sasl_oauthbearer_token_callback instead"

REFUSED = {
    "bootstrap.controllers": "brokers forward what is for the controller: use bootstrap.servers",
    "sasl.client.callback.handler.class": "a Java class cannot run here: use sasl_username and sasl_password, or "
    "sasl_oauthbearer_token_callback",
    "sasl.login.callback.handler.class": f"a Java class cannot run here: {_TOKEN_CALLBACK}",
    "sasl.login.class": f"a Java class cannot run here: {_TOKEN_CALLBACK}",
    "sasl.oauthbearer.jwt.retriever.class": f"a Java class cannot run here: {_TOKEN_CALLBACK}",
    "ssl.engine.factory.class": "a Java class cannot run here: use ssl_truststore_location and "
    "ssl_keystore_location, with stores in PEM or PKCS12",
    "transaction.two.phase.commit.enable": "leave it out: producer.stage_transaction() keeps a transaction open until "
    "Admin.end_transactions() ends it",
    **{
        f"sasl.oauthbearer.assertion.{name}": f"tokens by assertion are not supported: {_TOKEN_CALLBACK}"
        for name in (
            "algorithm",
            "claim.aud",
            "claim.exp.seconds",
            "claim.iss",
            "claim.jti.include",
            "claim.nbf.seconds",
            "claim.sub",
            "file",
            "private.key.file",
            "private.key.passphrase",
            "template.file",
        )
    },
}

_NO_INTERCEPTORS = (
    "a consumer calls no interceptors; do their work in the loop that reads the records, or in a deserializer"
)

# Two names of one setting, which producers have.
REFUSED_BY_CONSUMERS = {"interceptor.classes": _NO_INTERCEPTORS, "interceptors": _NO_INTERCEPTORS}
