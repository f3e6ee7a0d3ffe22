const letters = require("./letters.json");
module.exports = class {
  id() { return "letters"; }
  async callApi(prompt) {
    const found = letters.find((one) => prompt === `Write a short ${one.template} reference for ${one.name}.`);
    return { output: found.reply };
  }
};
