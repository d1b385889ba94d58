/**
 * Who may import whom, as rules for dependency-cruiser. Dependencies point one way; a cycle counts type imports too.
 *
 * A new package gets a row here.
 */

/** The sibling packages whose public modules a package's `src` may import. */
const siblings = {
  core: [],
  "kafka-client": ["core"],
  kafkajs: ["core", "kafka-client"],
  kafka: ["core", "kafka-client"],
  config: ["core", "kafka", "kafkajs"],
  observability: ["core"],
  messaging: ["core"],
  outbox: ["core"],
  node: ["config", "core", "kafkajs", "outbox", "schema-registry", "testkit"],
  nestjs: ["node"],
  rabbitmq: ["core", "messaging"],
  redis: ["core"],
  "schema-registry": ["core"],
  avro: ["core", "schema-registry"],
  "json-schema": ["core", "schema-registry"],
  protobuf: ["core", "schema-registry"],
  testkit: ["core", "outbox"],
  admin: ["config", "core"],
  cli: ["admin", "config", "core", "kafkajs", "observability", "outbox"],
  "kafka-runner": []
}

/** Programs that run in CI: they may import everything, and nobody imports them. */
const programs = ["examples", "benchmarks"]

/** The clients of brokers, with the packages that may import each (tests included). */
const clients = {
  kafkajs: ["kafkajs", "benchmarks", "kafka-runner"],
  amqplib: ["rabbitmq", "benchmarks"]
}

/**
 * The rooms of a package's `src/internal`, top to bottom: a room imports from rooms below it only. A new room gets a place here, and a README.md that says what
 * it owns.
 */
const rooms = {
  core: [
    "outside",
    "lifecycle",
    "audit",
    "fleet",
    "group",
    "checks",
    "delivery",
    "deadLetters",
    "letters",
    "runs",
    "requests",
    "parked",
    "replay",
    "order",
    "partition",
    "slots",
    "publish",
    "publishers",
    "observe",
    "settings",
    "record",
    "breaker",
    "retry",
    "failure",
    "base",
    "assignment",
    "port"
  ],
  "kafka-client": [
    "session",
    "publish",
    "fetch",
    "admin",
    "group",
    "offsets",
    "batch",
    "connection",
    "wire",
    "protocol",
    "sasl",
    "codec"
  ],
  outbox: ["relay", "ordered", "dispatch", "operator", "delivery", "store", "base"],
  testkit: ["bus", "trail", "target", "broker"],
  config: ["assemble", "files", "environment", "schema", "tree"],
  admin: [
    "outside",
    "process",
    "outbox",
    "runs",
    "held",
    "parked",
    "difference",
    "fleet",
    "audit",
    "idempotency",
    "console",
    "requests"
  ],
  cli: ["console", "held", "remote", "outbox", "dlt"],
  node: ["outbox"],
  messaging: ["kafka"]
}

const oneOf = (names) => `(?:${names.join("|")})`
const moduleOf = (name) => `(?:^|node_modules/)${name}(?:/|$)`

const siblingRules = Object.entries(siblings).map(([name, allowed]) => ({
  name: `${name}-imports-upwards`,
  comment: `src of ${name} may import of its siblings only: ${allowed.join(", ") || "none"}.`,
  severity: "error",
  from: { path: `^packages/${name}/src/` },
  to: { path: "^packages/", pathNot: `^packages/${oneOf([name, ...allowed])}/` }
}))

const roomRules = Object.entries(rooms).flatMap(([name, order]) =>
  order.slice(1).map((room, index) => ({
    name: `${name}-room-${room}-imports-upwards`,
    comment: `Room ${room} of ${name} imports only from rooms below it: ${order.slice(index + 2).join(", ") || "none"}.`,
    severity: "error",
    from: { path: `^packages/${name}/src/internal/${room}/` },
    to: { path: `^packages/${name}/src/internal/${oneOf(order.slice(0, index + 1))}/` }
  }))
)

const declaredRooms = Object.entries(rooms).map(([name, order]) => `^packages/${name}/src/internal/${oneOf(order)}/`)

const clientRules = Object.entries(clients).map(([client, owners]) => ({
  name: `${client.replace(/\W+/g, "-")}-outside-its-adapter`,
  comment: `${client} is imported only by ${owners.join(", ")}: everything else knows the broker by its port.`,
  severity: "error",
  from: { path: "^(packages|test|scripts)/", pathNot: `^packages/${oneOf(owners)}/` },
  // The whole of the specifier: packages/kafkajs is not the client.
  to: { path: moduleOf(client), pathNot: "^packages/" }
}))

export default {
  forbidden: [
    {
      name: "cycle",
      comment: "No module depends on itself, by types neither.",
      severity: "error",
      from: {},
      to: { circular: true }
    },
    ...siblingRules,
    ...roomRules,
    ...clientRules,
    {
      name: "room-without-a-place",
      comment: "A new room gets a place in the order of its package's rooms in scripts/dependencyRules.mjs.",
      severity: "error",
      from: { path: "^packages/[^/]+/src/internal/[^/]+/", pathNot: declaredRooms },
      to: {}
    },
    {
      name: "core-imports-more-than-effect",
      comment: "core runs wherever Effect runs: it imports effect and nothing else.",
      severity: "error",
      from: { path: "^packages/core/src/" },
      to: { pathNot: ["^packages/", moduleOf("effect")] }
    },
    {
      name: "program-imported",
      comment: "examples and benchmarks are imported by nobody.",
      severity: "error",
      from: { pathNot: `^packages/${oneOf(programs)}/` },
      to: { path: `^packages/${oneOf(programs)}/` }
    },
    {
      name: "internal-of-another-package",
      comment: "src/internal belongs to its package alone.",
      severity: "error",
      from: { path: "^packages/([^/]+)/" },
      to: { path: "^packages/[^/]+/src/internal/", pathNot: "^packages/$1/" }
    },
    {
      name: "source-imports-test",
      comment: "src does not know its tests.",
      severity: "error",
      from: { path: "^packages/[^/]+/src/" },
      to: { path: ["^packages/[^/]+/test/", "^test/"] }
    },
    {
      name: "package-without-a-row",
      comment: "A new package states in scripts/dependencyRules.mjs what it may import.",
      severity: "error",
      from: { path: "^packages/[^/]+/src/", pathNot: `^packages/${oneOf([...Object.keys(siblings), ...programs])}/` },
      to: {}
    },
    {
      name: "unresolvable",
      comment: "The import leads nowhere, or to a module that the package's exports close.",
      severity: "error",
      from: {},
      to: { couldNotResolve: true }
    }
  ],
  options: {
    parser: "swc", // the one that needs no classic TypeScript API; it keeps type imports
    doNotFollow: { path: "node_modules" },
    exclude: { path: ["/dist/", "^packages/[^/]+/node_modules/\\."] },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "types", "default"] }
  }
}
