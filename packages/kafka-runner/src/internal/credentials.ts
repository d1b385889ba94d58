/** The users of every secured cluster, with PLAIN and with SCRAM. */

/** A user of a cluster with SASL. */
export interface User {
  /** Name in SASL and ACLs. */
  readonly username: string
  /** Password in PLAIN and SCRAM. */
  readonly password: string
}

/** The users of a cluster with SASL. */
export interface Users {
  /** May do everything, also under ACLs. */
  readonly admin: User
  /** Under ACLs, may do nothing until ACLs grant it. */
  readonly app: User
}

export const users: Users = {
  admin: { username: "admin", password: "admin-secret" },
  app: { username: "app", password: "app-secret" }
}

const mechanisms = ["SCRAM-SHA-256", "SCRAM-SHA-512"] as const

/** Arguments of `StorageTool format`: SCRAM users are part of the cluster's metadata. */
export const scramFormatArguments: ReadonlyArray<string> = mechanisms.flatMap((mechanism) =>
  Object.values(users).flatMap((user: User) => [
    "--add-scram",
    `${mechanism}=[name=${user.username},password=${user.password}]`
  ])
)

const loginModule = (name: string) => `org.apache.kafka.common.security.${name} required`

/** Accepts unsigned tokens whose `sub` is the user, whose `exp` is in the future, and whose `iat` is past. */
const oauthProperties = (listener: string): Record<string, string> => ({
  [`listener.name.${listener}.oauthbearer.sasl.jaas.config`]: `${loginModule("oauthbearer.OAuthBearerLoginModule")};`
})

/** Each enabled mechanism needs its own login module; without it the broker does not start. */
export const saslProperties = (listener: string, oauth: boolean): Record<string, string> => ({
  [`listener.name.${listener}.sasl.enabled.mechanisms`]: [
    "PLAIN",
    ...mechanisms,
    ...(oauth ? ["OAUTHBEARER"] : [])
  ].join(","),
  ...(oauth ? oauthProperties(listener) : {}),
  [`listener.name.${listener}.plain.sasl.jaas.config`]: `${loginModule("plain.PlainLoginModule")} ${Object.values(users)
    .map((user: User) => `user_${user.username}="${user.password}"`)
    .join(" ")};`,
  ...Object.fromEntries(
    mechanisms.map((mechanism) => [
      `listener.name.${listener}.${mechanism.toLowerCase()}.sasl.jaas.config`,
      `${loginModule("scram.ScramLoginModule")};`
    ])
  )
})
