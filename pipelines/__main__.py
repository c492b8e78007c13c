from pipelines.cli.main import main

raise SystemExit(main())
