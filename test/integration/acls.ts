/** Grants ACLs on a cluster. The port has no such request, so this is the client underneath the adapter. */
import { createRequire } from "node:module"
import type { RealKafka } from "@eventbus/kafka-runner"
import { Effect } from "effect"

interface Client {
  readonly admin: () => {
    readonly connect: () => Promise<void>
    readonly createAcls: (request: { readonly acl: ReadonlyArray<object> }) => Promise<boolean>
    readonly disconnect: () => Promise<void>
  }
}

interface ClientModule {
  readonly Kafka: new (options: object) => Client
  readonly AclResourceTypes: Readonly<Record<"TOPIC" | "GROUP" | "TRANSACTIONAL_ID", number>>
  readonly AclOperationTypes: Readonly<Record<Acl["operation"], number>>
  readonly AclPermissionTypes: { readonly ALLOW: number }
  readonly ResourcePatternTypes: { readonly LITERAL: number }
}

const client: ClientModule = createRequire(new URL("../../packages/kafkajs/package.json", import.meta.url))("kafkajs")

/** The ACLs of the user `app`. */
export interface Acl {
  readonly resource: "TOPIC" | "GROUP" | "TRANSACTIONAL_ID"
  readonly name: string
  readonly operation: "READ" | "WRITE" | "DESCRIBE" | "CREATE" | "DESCRIBE_CONFIGS"
}

/** Lets the user `app` do this. */
export const grant = (cluster: RealKafka.Cluster, ...acls: ReadonlyArray<Acl>): Effect.Effect<void> =>
  Effect.promise(async () => {
    const { username, password } = cluster.users.admin
    const admin = new client.Kafka({
      brokers: cluster.bootstrap,
      ssl: { ca: cluster.ca },
      sasl: { mechanism: "plain", username, password },
      logLevel: 0
    }).admin()
    await admin.connect()
    await admin.createAcls({
      acl: acls.map(({ resource, name, operation }) => ({
        principal: `User:${cluster.users.app.username}`,
        host: "*",
        resourceName: name,
        resourceType: client.AclResourceTypes[resource],
        resourcePatternType: client.ResourcePatternTypes.LITERAL,
        operation: client.AclOperationTypes[operation],
        permissionType: client.AclPermissionTypes.ALLOW
      }))
    })
    await admin.disconnect()
  })
