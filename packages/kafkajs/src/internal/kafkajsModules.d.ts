/** kafkajs has no types for its internal modules. `kafkajsInternals.ts` gives each module its type and checks it. */
declare module "kafkajs/src/*" {
  const exported: unknown
  export default exported
}
