export { SchemaRegistry, UnusableSchema } from "@eventbus/schema-registry"
export * as Avro from "./Avro.ts"
