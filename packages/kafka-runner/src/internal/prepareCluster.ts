/** Prepares a cluster before its brokers start: ports, certificate, configuration files, formatted data folders. */
import { randomBytes } from "node:crypto"
import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import * as ClientCertificate from "../ClientCertificate.ts"
import { StartFailed } from "../RealKafkaError.ts"
import { type BrokerCommand, brokerCommand, type Compiler } from "./brokerProcess.ts"
import { makeCertificate } from "./certificate.ts"
import { scramFormatArguments } from "./credentials.ts"
import { type ExecuteFailure, execute } from "./execute.ts"
import { freePorts } from "./freePorts.ts"
import type { Installation } from "./installation.ts"
import {
  type ClusterShape,
  type Node,
  renderProperties,
  type Security,
  serverProperties,
  usesSasl,
  usesTls
} from "./serverProperties.ts"

export interface ClusterRequest {
  readonly brokers: 1 | 3
  readonly security: Security
  readonly acls: boolean
  readonly oauth: boolean
  readonly clientCertificates: boolean
  readonly config: Readonly<Record<string, string>>
  readonly compiler: Compiler
  /** Ports are taken from here upwards. */
  readonly firstPort: number
}

export interface PreparedBroker {
  readonly address: string
  /** Address of the brokers' own plain-text listener. */
  readonly internalAddress: string
  /** Where its logs are. */
  readonly dataFolder: string
  readonly command: BrokerCommand
}

export interface PreparedCluster {
  /** Certificate of the brokers as PEM; undefined without TLS. */
  readonly ca: string | undefined
  /** The client certificate that the brokers trust; undefined when clients need none. */
  readonly client: ClientCertificate.ClientCertificate | undefined
  /** PEM file of trusted client certificates, which a broker reads when it starts; undefined when clients need none. */
  readonly trustedClients: string | undefined
  /** By node id, in ascending order. */
  readonly brokers: ReadonlyMap<number, PreparedBroker>
}

const assignPorts = (brokers: number, ports: ReadonlyArray<number>): ReadonlyArray<Node> =>
  Array.from({ length: brokers }, (_, index) => ({
    nodeId: index + 1,
    clientPort: ports[index]!,
    internalPort: ports[brokers + index]!,
    controllerPort: ports[2 * brokers + index]!
  }))

/** Small enough for three brokers beside a test suite. */
const heapMegabytes = { 1: 512, 3: 384 }

export const prepareCluster = Effect.fnUntraced(function* (
  installation: Installation,
  runFolder: string,
  request: ClusterRequest
): Effect.fn.Return<PreparedCluster, StartFailed> {
  const nodes = assignPorts(request.brokers, yield* freePorts(3 * request.brokers, request.firstPort))
  const certificate = usesTls(request.security)
    ? yield* makeCertificate(installation.keytool, runFolder).pipe(asStartFailure("the certificate was not made"))
    : undefined
  const client = request.clientCertificates ? ClientCertificate.make("app") : undefined
  const trustedClients = client === undefined ? undefined : join(runFolder, "clients.pem")
  if (client !== undefined && trustedClients !== undefined) {
    yield* Effect.promise(() => writeFile(trustedClients, client.cert))
  }
  const shape: ClusterShape = { ...request, nodes, certificate, trustedClients }
  const clusterId = randomBytes(16).toString("base64url")
  const brokers = yield* Effect.forEach(
    nodes,
    (node) =>
      prepareNode(installation, join(runFolder, `broker-${node.nodeId}`), node, shape, clusterId, request.compiler),
    { concurrency: "unbounded" } // three at most
  )
  return {
    ca: certificate?.pem,
    client,
    trustedClients,
    brokers: new Map(brokers)
  }
})

const prepareNode = Effect.fnUntraced(function* (
  installation: Installation,
  folder: string,
  node: Node,
  shape: ClusterShape,
  clusterId: string,
  compiler: Compiler
) {
  const propertiesFile = join(folder, "server.properties")
  const dataFolder = join(folder, "data")
  yield* Effect.promise(async () => {
    await mkdir(folder, { recursive: true })
    await writeFile(propertiesFile, renderProperties(serverProperties(node, shape, dataFolder)))
  })
  yield* execute(installation.java, [
    "-XX:TieredStopAtLevel=1", // The optimising compiler does not pay off within a second of work.
    ...[
      "-cp",
      installation.classPath,
      "kafka.tools.StorageTool",
      "format",
      `--cluster-id=${clusterId}`,
      "-c",
      propertiesFile
    ],
    ...(usesSasl(shape.security) ? scramFormatArguments : [])
  ]).pipe(asStartFailure("its data folder was not formatted"))
  const command = brokerCommand({
    ...installation,
    propertiesFile,
    logFile: join(folder, "broker.log"),
    compiler,
    heapMegabytes: heapMegabytes[shape.nodes.length === 1 ? 1 : 3]
  })
  return [
    node.nodeId,
    {
      address: `127.0.0.1:${node.clientPort}`,
      internalAddress: `127.0.0.1:${node.internalPort}`,
      dataFolder,
      command
    }
  ] as const
})

const asStartFailure = (detail: string) =>
  Effect.mapError((failure: ExecuteFailure) => new StartFailed({ detail, log: failure.output }))
