export { SchemaRegistry, UnusableSchema } from "@eventbus/schema-registry"
export * as Protobuf from "./Protobuf.ts"
