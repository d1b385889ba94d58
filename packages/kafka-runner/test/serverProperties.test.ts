import { describe, expect, it } from "vitest"
import { type ClusterShape, type Node, renderProperties, serverProperties } from "../src/internal/serverProperties.ts"

const nodes: ReadonlyArray<Node> = [1, 2, 3].map((nodeId) => ({
  nodeId,
  clientPort: 100 + nodeId,
  internalPort: 200 + nodeId,
  controllerPort: 300 + nodeId
}))
const single: ClusterShape = {
  nodes: nodes.slice(0, 1),
  security: "plaintext",
  acls: false,
  oauth: false,
  certificate: undefined,
  trustedClients: undefined,
  config: {}
}
const propertiesOf = (shape: ClusterShape) => serverProperties(shape.nodes[0]!, shape, "/data")

describe("serverProperties", () => {
  it("gives one broker one replica of everything", () => {
    expect(propertiesOf(single)).toMatchObject({
      "controller.quorum.voters": "1@127.0.0.1:301",
      "offsets.topic.replication.factor": "1",
      "min.insync.replicas": "1"
    })
  })

  it("gives three brokers three replicas, of which two must acknowledge", () => {
    expect(propertiesOf({ ...single, nodes })).toMatchObject({
      "controller.quorum.voters": "1@127.0.0.1:301,2@127.0.0.1:302,3@127.0.0.1:303",
      "default.replication.factor": "3",
      "offsets.topic.replication.factor": "3",
      "min.insync.replicas": "2"
    })
  })

  it("secures the clients' listener only", () => {
    const properties = propertiesOf({ ...single, security: "sasl_ssl" })
    expect(properties["listener.security.protocol.map"]).toBe("CLIENT:SASL_SSL,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT")
    expect(properties["listener.name.client.sasl.enabled.mechanisms"]).toBe("PLAIN,SCRAM-SHA-256,SCRAM-SHA-512")
  })

  it("lets the caller's properties override its own", () => {
    expect(propertiesOf({ ...single, config: { "num.partitions": "7" } })["num.partitions"]).toBe("7")
  })

  it("escapes backslashes in the file", () => {
    expect(renderProperties({ a: "C:\\data" })).toBe("a=C:\\\\data\n")
  })
})
