/** The configuration of each broker: a pure function of the cluster's shape. */
import type { Certificate } from "./certificate.ts"
import { saslProperties } from "./credentials.ts"

/** The security protocol of the clients' listener. */
export type Security = "plaintext" | "sasl" | "ssl" | "sasl_ssl"

export interface Node {
  readonly nodeId: number
  readonly clientPort: number
  readonly internalPort: number
  readonly controllerPort: number
}

export interface ClusterShape {
  readonly nodes: ReadonlyArray<Node>
  readonly security: Security
  readonly acls: boolean
  readonly oauth: boolean
  readonly certificate: Certificate | undefined
  /** PEM file of the clients' certificates; undefined when clients need none. */
  readonly trustedClients: string | undefined
  /** More properties; they override those of this file. */
  readonly config: Readonly<Record<string, string>>
}

const protocols: Record<Security, string> = {
  plaintext: "PLAINTEXT",
  sasl: "SASL_PLAINTEXT",
  ssl: "SSL",
  sasl_ssl: "SASL_SSL"
}

export const usesSasl = (security: Security): boolean => security === "sasl" || security === "sasl_ssl"
export const usesTls = (security: Security): boolean => security === "ssl" || security === "sasl_ssl"

/** Only the clients' listener is secured. Brokers talk to each other in plain text on the loopback device. */
const listeners = (node: Node, shape: ClusterShape): Record<string, string> => {
  const reachable = `CLIENT://127.0.0.1:${node.clientPort},INTERNAL://127.0.0.1:${node.internalPort}`
  return {
    "process.roles": "broker,controller",
    "node.id": String(node.nodeId),
    "controller.quorum.voters": shape.nodes.map((n) => `${n.nodeId}@127.0.0.1:${n.controllerPort}`).join(","),
    listeners: `${reachable},CONTROLLER://127.0.0.1:${node.controllerPort}`,
    "advertised.listeners": reachable,
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "INTERNAL",
    "listener.security.protocol.map": `CLIENT:${protocols[shape.security]},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT`
  }
}

/** Internal topics have few partitions: the default of 50 makes start and failover slow on a small machine. */
const topics = (brokers: number): Record<string, string> => {
  const replicas = String(brokers)
  const minIsr = brokers === 1 ? "1" : "2"
  return {
    "num.partitions": "3",
    "default.replication.factor": replicas,
    "min.insync.replicas": minIsr,
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": replicas,
    "transaction.state.log.num.partitions": "5",
    "transaction.state.log.replication.factor": replicas,
    "transaction.state.log.min.isr": minIsr,
    "share.coordinator.state.topic.num.partitions": "5",
    "share.coordinator.state.topic.replication.factor": replicas,
    "share.coordinator.state.topic.min.isr": minIsr,
    // Tests must see a missing topic; the broker must not create it.
    "auto.create.topics.enable": "false"
  }
}

/** The cluster notices a dead broker after 6 s instead of 9 s. */
const failover: Record<string, string> = {
  "broker.session.timeout.ms": "6000",
  "broker.heartbeat.interval.ms": "1500"
}

/** Allows the short sessions of tests, and gives them to groups whose sessions the broker decides (KIP-848). The first member of a group does not wait for others. */
const groups: Record<string, string> = {
  "group.initial.rebalance.delay.ms": "0",
  "group.min.session.timeout.ms": "1000",
  "group.consumer.min.session.timeout.ms": "1000",
  "group.consumer.session.timeout.ms": "6000",
  "group.consumer.min.heartbeat.interval.ms": "100",
  "group.consumer.heartbeat.interval.ms": "1000"
}

const tls = (certificate: Certificate): Record<string, string> => ({
  "listener.name.client.ssl.keystore.type": "PKCS12",
  "listener.name.client.ssl.keystore.location": certificate.keyStore,
  "listener.name.client.ssl.keystore.password": certificate.password,
  "listener.name.client.ssl.key.password": certificate.password
})

const mutualTls = (trustedClients: string): Record<string, string> => ({
  "listener.name.client.ssl.client.auth": "required",
  "listener.name.client.ssl.truststore.type": "PEM",
  "listener.name.client.ssl.truststore.location": trustedClients
})

/** Only the brokers themselves are anonymous, since ACLs need SASL on the clients' listener. */
const authorizer: Record<string, string> = {
  "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
  "super.users": "User:ANONYMOUS;User:admin"
}

export const serverProperties = (node: Node, shape: ClusterShape, dataFolder: string): Record<string, string> => ({
  ...listeners(node, shape),
  "log.dirs": dataFolder,
  ...topics(shape.nodes.length),
  ...failover,
  ...groups,
  ...(usesSasl(shape.security) ? saslProperties("client", shape.oauth) : {}),
  ...(shape.certificate === undefined ? {} : tls(shape.certificate)),
  ...(shape.trustedClients === undefined ? {} : mutualTls(shape.trustedClients)),
  ...(shape.acls ? authorizer : {}),
  ...shape.config
})

/** The text of a Java properties file, in which a backslash starts an escape. */
export const renderProperties = (properties: Readonly<Record<string, string>>): string =>
  Object.entries(properties)
    .map(([key, value]) => `${key}=${value.replaceAll("\\", "\\\\")}\n`)
    .join("")
