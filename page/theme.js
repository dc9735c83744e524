// Loaded before the first paint, so that a chosen scheme does not flash the other one.
(() => {
  try {
    const theme = localStorage.getItem('theme');
    if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
  } catch (e) {
    // Without storage the system's scheme counts.
  }
})();
