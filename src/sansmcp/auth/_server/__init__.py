"""The server's side of authorization: a protected resource, and checks of the tokens it gets.

`resource_server.ResourceServer` takes the credentials of requests, has tokens verified, and grants
or refuses access; `protected_resource.ProtectedResource` has the settings, metadata and challenges;
`claims` judges what a token says. It knows `_common` and `_wire`. Begin with `resource_server`.
"""
